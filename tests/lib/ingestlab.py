"""What the tests of fetching share: a list of URLs, what the lake and the store say of it."""
import hashlib
import json
import os
import subprocess

from pawltest import RELEASE


def settings(lab, **more):
    """Loopback is a special address: it has to be allowed."""
    lab.set(fetch_allow_private="true", fetch_robots="false", retry_base="20ms", retry_max="100ms",
            **more)


def write_list(lab, urls, name="urls.txt"):
    with open(lab.path(name), "w", encoding="utf-8") as f:
        f.writelines(url + "\n" for url in urls)
    return lab.path(name)


def fetch(lab, *args, **more):
    return json.loads(lab.pawl("fetch", *args, "--json", **more).stdout)


def exported(lab):
    """One object for each artifact: {(url, variant): row}."""
    rows = [json.loads(line) for line in
            lab.pawl("export", binary=RELEASE).stdout.splitlines()]
    return {(row["url"], row["variant"]): row for row in rows}


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def checked_by_sha256sum(lab):
    """(exit status, words) of sha256sum over what `export` says."""
    text = lab.pawl("export", "--format", "sha256sum", binary=RELEASE).stdout
    done = subprocess.run(["sha256sum", "-c", "--quiet", "-"], input=text, text=True, cwd=lab.folder,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout, len(text.splitlines())


def lake_files(lab, *below):
    """Regular files of the lake's part, by path."""
    root = os.path.join(lab.settings.get("lake_path") or lab.path("lake"), *below)
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(root)
                  for name in names)


def verify(lab, *args, status=0):
    return json.loads(lab.pawl("verify", *args, "--json", status=status, binary=RELEASE).stdout)
