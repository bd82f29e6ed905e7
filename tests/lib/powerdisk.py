"""A file system whose power can be cut."""
import contextlib
import fcntl
import os
import struct
import subprocess

from pawltest import Lab, Timeout, wait_until

FS_IOC_SHUTDOWN, NOLOGFLUSH = 0x8004587D, 2


class Disk:
    """An ext4 file system whose power can be cut. With commit=300 the kernel seldom flushes it."""

    def __init__(self, folder):
        self.image, self.mount = os.path.join(folder, "disk.img"), os.path.join(folder, "disk")
        os.mkdir(self.mount)
        subprocess.run(["truncate", "-s", "96M", self.image], check=True)
        subprocess.run(["mkfs.ext4", "-q", "-F", self.image], check=True)
        self.mounted = False

    def on(self):
        subprocess.run(["mount", "-o", "loop,commit=300", self.image, self.mount], check=True,
                       stderr=subprocess.PIPE, text=True)
        self.mounted = True

    def cut(self):
        fd = os.open(self.mount, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, FS_IOC_SHUTDOWN, struct.pack("I", NOLOGFLUSH))
        finally:
            os.close(fd)

    def off(self):
        """Unmount, as soon as nobody is left on it."""
        def unmounted():
            return subprocess.run(["umount", self.mount], stderr=subprocess.DEVNULL).returncode == 0
        if self.mounted:
            wait_until(unmounted, 20, "umount", 0.02)
            self.mounted = False

    def remove(self):
        with contextlib.suppress(Timeout):
            self.off()
        if self.mounted:
            subprocess.run(["umount", "-l", self.mount])


def why_not():
    """The reason for which this machine cannot cut its power, or None."""
    if os.geteuid() != 0:
        return "only root can mount a loop device"
    with Lab("probe") as lab:
        try:
            disk = Disk(lab.folder)
            lab.undo.callback(disk.remove)
            disk.on()
            disk.cut()
        except (OSError, subprocess.CalledProcessError) as e:
            words = (getattr(e, "stderr", None) or str(e)).strip().replace("\n", " ")
            return f"no loop mount or no FS_IOC_SHUTDOWN here: {words}"
    return None
