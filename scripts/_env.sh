# shellcheck shell=bash
# Sourced by the scripts beside it. Makes .venv and keeps it in step with requirements.lock, pyproject.toml and setup.py.
#
# The stamp in .venv says what it was made from; it is empty while somebody works on it, so that an interrupted set-up is
# begun again. All of this happens under a lock that the set-up's processes hold: it is free when the last of them has ended.

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P) || exit 2
venv=$root/.venv
python=$venv/bin/python
stamp=$venv/mkframe-setup
pythons=(python3 python3.13 python3.12 python3.11)

say() { printf 'mkframe: %s\n' "$*" >&2; }
die() { say "$@"; exit 2; }

# Leaves .venv ready, or ends the script with one line that says why, and 2.
ensure_environment() {
    up_to_date && return
    (
        { exec 9>>"$root/.venv.lock"; } 2>/dev/null || die "cannot write in $root; clone the repository into a folder of your own"
        base=$(find_python) || die "no usable Python 3.11, 3.12 or 3.13 among: ${pythons[*]}; install one (with venv and ensurepip) and put it on PATH"
        wait_for_turn "$base"
        up_to_date && exit 0
        if usable; then say "the pinned packages changed; updating .venv"; else make_empty "$base"; fi
        : >"$stamp" || die "cannot write $stamp; free some space or check its permissions"
        install_packages
        { description >"$stamp.part" && mv -f -- "$stamp.part" "$stamp"; } || die "cannot write $stamp; free some space and run this again"
    ) || exit
}

up_to_date() { [ -x "$python" ] && [ -s "$stamp" ] && description | cmp -s - "$stamp"; }

# An environment that a finished set-up left here for this folder and this Python: an update in place will do.
usable() { [ -x "$python" ] && [ -s "$stamp" ] && [ "$(place)" = "$(head -n 1 -- "$stamp")" ]; }

description() { place && cat -- "$root/requirements.lock" "$root/pyproject.toml" "$root/setup.py"; }

# The folder counts because an editable installation holds its path.
place() { printf '%s, %s\n' "$root" "$(grep '^version' "$venv/pyvenv.cfg" 2>/dev/null)"; }

# Prints the first command that is a supported Python and can make environments. A version manager's placeholder is none.
find_python() {
    local name
    for name in "${pythons[@]}"; do
        if "$name" -I -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1; then
            printf '%s\n' "$name"
            return
        fi
    done
    return 1
}

# Takes the lock on descriptor 9, which this shell keeps. Python, because flock(1) is not everywhere.
wait_for_turn() {
    "$1" -I -c '
import fcntl, sys
try:
    fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("mkframe: another set-up works on .venv; waiting for it", file=sys.stderr)
    fcntl.flock(9, fcntl.LOCK_EX)
' || die "cannot lock $root/.venv.lock; does this file system have locks?"
}

# A new environment in .venv. Removes what an unfinished set-up left there, and nothing that somebody else made.
make_empty() {
    if [ -e "$venv" ] && [ ! -e "$stamp" ] && [ -n "$(ls -A -- "$venv")" ]; then
        die "$venv was not made by these scripts; move it away or delete it, then run this again"
    fi
    say "setting up .venv (once; a few minutes and some gigabytes)"
    { mkdir -p -- "$venv" && : >"$stamp"; } || die "cannot write $venv; free some space or check its permissions"
    find "$venv/" -mindepth 1 -maxdepth 1 ! -path "$venv/mkframe-setup" -exec rm -rf -- {} +
    quietly "making an environment with $1" "$1" -I -m venv "$venv"
}

install_packages() {
    local pip=("$python" -I -m pip --disable-pip-version-check --no-input install)
    # A user's pip settings may ask for another target than this environment.
    export PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0
    unset PIP_TARGET PIP_PREFIX
    quietly "installing requirements.lock" "${pip[@]}" -r "$root/requirements.lock"
    quietly "installing mkframe" "${pip[@]}" --no-deps --no-build-isolation -e "$root"
    # Type checkers do not follow the import hooks of an editable installation.
    { mkdir -p -- "$venv/names" && ln -sfn -- "$root/plugins" "$venv/names/mkframe_plugins"; } || die "cannot write $venv/names"
}

# quietly WHAT COMMAND...: shows the command's output only if it fails, and then ends with a reason.
quietly() {
    local what=$1 output reason="see above"
    shift
    if output=$("$@" 2>&1 </dev/null); then return; fi
    printf '%s\n' "$output" | tail -n 20 >&2
    case $output in
        *"No space left"*) reason="the disk is full" ;;
        *"Failed to establish a new connection"* | *"Temporary failure in name resolution"* | *"Network is unreachable"*)
            reason="the package index cannot be reached" ;;
    esac
    die "$what failed: $reason; run this again when that is mended"
}
