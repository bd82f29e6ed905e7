#include "faultvfs.h"

#include <sqlite3.h>
#include <stdlib.h>

struct file {
    sqlite3_file base;  /* first */
    sqlite3_file *real; /* behind this struct */
};

static struct {
    sqlite3_vfs vfs, *real;
    bool armed, stays, fired;
    enum fault_kind kind;
    int n, count;
} fault;

/* 0 = go on. */
static int hit(int ioerr)
{
    if (!fault.armed)
        return 0;
    fault.count++;
    if (!fault.n || fault.count < fault.n || (fault.count > fault.n && !fault.stays))
        return 0;
    fault.fired = true;
    return fault.kind == FAULT_FULL ? SQLITE_FULL : ioerr;
}

static sqlite3_file *real(sqlite3_file *f)
{
    return ((struct file *)f)->real;
}

static int f_close(sqlite3_file *f)
{
    return real(f)->pMethods->xClose(real(f));
}
static int f_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
    return real(f)->pMethods->xRead(real(f), p, n, at);
}
static int f_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    int rc = hit(SQLITE_IOERR_WRITE);
    if (!rc)
        return real(f)->pMethods->xWrite(real(f), p, n, at);
    if (fault.kind == FAULT_TORN && n > 1)
        (void)real(f)->pMethods->xWrite(real(f), p, n / 2, at);
    return rc;
}
static int f_truncate(sqlite3_file *f, sqlite3_int64 n)
{
    int rc = hit(SQLITE_IOERR_TRUNCATE);
    return rc ? rc : real(f)->pMethods->xTruncate(real(f), n);
}
static int f_sync(sqlite3_file *f, int flags)
{
    int rc = hit(SQLITE_IOERR_FSYNC); /* a sync has no other way to fail */
    return rc ? SQLITE_IOERR_FSYNC : real(f)->pMethods->xSync(real(f), flags);
}
static int f_size(sqlite3_file *f, sqlite3_int64 *n)
{
    return real(f)->pMethods->xFileSize(real(f), n);
}
static int f_lock(sqlite3_file *f, int how)
{
    return real(f)->pMethods->xLock(real(f), how);
}
static int f_unlock(sqlite3_file *f, int how)
{
    return real(f)->pMethods->xUnlock(real(f), how);
}
static int f_reserved(sqlite3_file *f, int *out)
{
    return real(f)->pMethods->xCheckReservedLock(real(f), out);
}
static int f_control(sqlite3_file *f, int op, void *arg)
{
    return real(f)->pMethods->xFileControl(real(f), op, arg);
}
static int f_sector(sqlite3_file *f)
{
    return real(f)->pMethods->xSectorSize(real(f));
}
static int f_device(sqlite3_file *f)
{
    return real(f)->pMethods->xDeviceCharacteristics(real(f));
}
static int f_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out)
{
    return real(f)->pMethods->xShmMap(real(f), page, size, extend, out);
}
static int f_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    return real(f)->pMethods->xShmLock(real(f), offset, n, flags);
}
static void f_shm_barrier(sqlite3_file *f)
{
    real(f)->pMethods->xShmBarrier(real(f));
}
static int f_shm_unmap(sqlite3_file *f, int remove)
{
    return real(f)->pMethods->xShmUnmap(real(f), remove);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = f_close,
    .xRead = f_read,
    .xWrite = f_write,
    .xTruncate = f_truncate,
    .xSync = f_sync,
    .xFileSize = f_size,
    .xLock = f_lock,
    .xUnlock = f_unlock,
    .xCheckReservedLock = f_reserved,
    .xFileControl = f_control,
    .xSectorSize = f_sector,
    .xDeviceCharacteristics = f_device,
    .xShmMap = f_shm_map,
    .xShmLock = f_shm_lock,
    .xShmBarrier = f_shm_barrier,
    .xShmUnmap = f_shm_unmap,
};

static int v_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out)
{
    (void)v;
    struct file *file = (struct file *)f;
    file->real = (sqlite3_file *)(file + 1);
    int rc = fault.real->xOpen(fault.real, name, file->real, flags, out);
    file->base.pMethods = file->real->pMethods ? &methods : NULL;
    return rc;
}

static int v_delete(sqlite3_vfs *v, const char *name, int sync)
{
    (void)v;
    int rc = hit(SQLITE_IOERR_DELETE);
    return rc ? SQLITE_IOERR_DELETE : fault.real->xDelete(fault.real, name, sync);
}

void fault_register(void)
{
    fault.real = sqlite3_vfs_find(NULL);
    fault.vfs = *fault.real;
    fault.vfs.zName = FAULT_VFS;
    fault.vfs.pNext = NULL;
    fault.vfs.szOsFile += (int)sizeof(struct file);
    fault.vfs.xOpen = v_open;
    fault.vfs.xDelete = v_delete;
    sqlite3_vfs_register(&fault.vfs, 0);
    setenv("PAWL_TEST_VFS", FAULT_VFS, 1);
}

void fault_arm(enum fault_kind kind, int n, bool stays)
{
    fault.armed = true;
    fault.fired = false;
    fault.kind = kind;
    fault.n = n;
    fault.stays = stays;
    fault.count = 0;
}

int fault_disarm(void)
{
    fault.armed = false;
    return fault.count;
}

bool fault_fired(void)
{
    return fault.fired;
}
