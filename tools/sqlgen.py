#!/usr/bin/env python3
"""Turn .sql files into a C header: statements with `-- name: x` headings become an enum and a table,
files named NNNN_name.sql become migrations with their SHA-256, functions.sql a text with its own. No
SQL is written in C.
`{16: (?, ?)}` stands for sixteen such groups with commas between them; `@word` for the text under
`-- define: word` in the same file."""
import hashlib
import pathlib
import re
import sys


def literal(text):
    lines = (line.replace("\\", "\\\\").replace('"', '\\"') for line in text.strip().splitlines())
    return "\n".join(f'    "{line}\\n"' for line in lines)


def statements(text):
    for word, body in re.findall(r"^-- define: (\w+)\n(.*?)\n\n", text, flags=re.M | re.S):
        text = text.replace("@" + word, body)
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.M)
    repeated = (re.sub(r"\{(\d+): ([^}]*)\}", lambda m: ", ".join([m[2]] * int(m[1])), body) for body in parts[2::2])
    return zip(parts[1::2], (body.strip() for body in repeated))


def main(out, *files):
    named, migrations, functions = [], [], None
    for path in sorted(map(pathlib.Path, files), key=lambda p: p.name):
        text = path.read_text()
        match = re.match(r"(\d{4})_(\w+)\.sql", path.name)
        if match:
            migrations.append((int(match[1]), match[2], text))
        elif path.name == "functions.sql":
            functions = text
        else:
            named += statements(text)
    names = [name for name, _ in named]
    if len(set(names)) != len(names):
        sys.exit(f"sqlgen: a statement name occurs twice: {[n for n in names if names.count(n) > 1][0]}")
    if [m[0] for m in migrations] != list(range(1, len(migrations) + 1)):
        sys.exit("sqlgen: migrations are not numbered 1, 2, 3, …")
    with open(out, "w") as f:
        f.write("/* Made by tools/sqlgen.py from the .sql files; do not edit. */\n")
        f.write("enum stmt_id {\n" + "".join(f"    STMT_{n.upper()},\n" for n in names) + "    N_STMTS\n};\n")
        f.write("#ifdef STMT_TABLE\n")
        f.write("static const struct { const char *name, *sql; } stmt_table[N_STMTS] = {\n")
        f.write("".join(f'{{"{n}",\n{literal(s)}}},\n' for n, s in named) + "};\n#endif\n")
        f.write("#ifdef MIGRATION_TABLE\nstatic const struct { int version; const char *name, *checksum, *sql; } migrations[] = {\n")
        for version, name, text in migrations:
            digest = hashlib.sha256(text.encode()).hexdigest()
            f.write(f'{{{version}, "{name}", "{digest}",\n{literal(text)}}},\n')
        f.write("};\n")
        if functions is not None:
            digest = hashlib.sha256(functions.encode()).hexdigest()
            f.write(f'static const char functions_checksum[] = "{digest}";\n')
            f.write(f"static const char functions_sql[] =\n{literal(functions)};\n")
        f.write(f"#endif\nenum {{ SCHEMA_VERSION = {len(migrations)} }};\n")


main(*sys.argv[1:])
