/* Keys of the live view. No I/O here. */
#include "watch.h"

static size_t character_length(struct sv s)
{
    unsigned char c = (unsigned char)s.p[0];
    size_t n = c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    return n < s.n ? n : s.n;
}

/* ESC [ … letter and ESC O letter. */
static size_t read_sequence(struct sv s, struct key *out)
{
    size_t n = 2;
    if (s.p[1] == '[')
        while (n < s.n && !(s.p[n] >= '@' && s.p[n] <= '~'))
            n++;
    if (n < s.n && s.p[n] == 'A')
        out->code = KEY_UP;
    else if (n < s.n && s.p[n] == 'B')
        out->code = KEY_DOWN;
    return n < s.n ? n + 1 : s.n;
}

size_t key_read(struct sv s, struct key *out)
{
    *out = (struct key){.code = KEY_OTHER};
    if (s.p[0] == '\033' && s.n > 2 && (s.p[1] == '[' || s.p[1] == 'O'))
        return read_sequence(s, out);
    if (s.p[0] == '\033')
        out->code = KEY_ESCAPE;
    else if (s.p[0] == '\r' || s.p[0] == '\n')
        out->code = KEY_ENTER;
    else if (s.p[0] == 127 || s.p[0] == 8)
        out->code = KEY_ERASE;
    else if (s.p[0] == 'U' - '@')
        out->code = KEY_CLEAR;
    else if ((unsigned char)s.p[0] >= ' ') {
        out->code = KEY_TEXT;
        out->text = sv_make(s.p, character_length(s));
        return out->text.n;
    }
    return 1;
}

static void erase_character(char *text)
{
    size_t n = strlen(text);
    while (n && ((unsigned char)text[n - 1] & 0xc0) == 0x80)
        n--;
    text[n ? n - 1 : 0] = '\0';
}

static void edit_text(struct watch_ui *ui, const struct key *key)
{
    size_t n = strlen(ui->text);
    if (key->code == KEY_TEXT && n + key->text.n < sizeof(ui->text)) {
        memcpy(ui->text + n, key->text.p, key->text.n);
        ui->text[n + key->text.n] = '\0';
    } else if (key->code == KEY_ERASE) {
        erase_character(ui->text);
    } else if (key->code == KEY_CLEAR || key->code == KEY_ESCAPE) {
        ui->text[0] = '\0';
    }
    ui->typing = key->code != KEY_ENTER && key->code != KEY_ESCAPE;
}

/* The next or previous one of the queues that are shown. */
static void move_selection(struct watch_ui *ui, const struct watch_data *d, bool down)
{
    const struct queue_row *now = watch_selected(d, ui), *next = NULL;
    for (size_t i = 0; i < d->n_rows && now; i++) {
        const struct queue_row *row = &d->rows[i];
        if (row == now || !watch_shows_queue(d, ui, row))
            continue;
        if (down && row > now) {
            next = row;
            break;
        }
        if (!down && row < now)
            next = row;
    }
    if (!next || next->queue.n >= sizeof(ui->selected))
        return;
    memcpy(ui->selected, next->queue.p, next->queue.n);
    ui->selected[next->queue.n] = '\0';
}

enum watch_act watch_key(struct watch_ui *ui, const struct watch_data *d, const struct key *key)
{
    if (ui->typing) {
        edit_text(ui, key);
        return WATCH_NOTHING;
    }
    char c = key->code == KEY_TEXT && key->text.n == 1 ? key->text.p[0] : '\0';
    ui->note[0] = '\0';
    if (c == 'q')
        return WATCH_QUIT;
    if (c == 'p')
        return WATCH_PAUSE;
    if (c == 'f')
        ui->filter = (enum watch_filter)((ui->filter + 1) % N_WATCH_FILTERS);
    else if (c == '/')
        ui->typing = true;
    else if (c == '?')
        ui->help = !ui->help;
    else if (c == 'j' || key->code == KEY_DOWN)
        move_selection(ui, d, true);
    else if (c == 'k' || key->code == KEY_UP)
        move_selection(ui, d, false);
    else if (key->code == KEY_ESCAPE)
        ui->text[0] = '\0';
    return WATCH_NOTHING;
}
