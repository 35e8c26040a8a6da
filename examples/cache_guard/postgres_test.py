"""End-to-end test of cache_guard with PostgreSQL: warm-up from the table, writes, and lookups without the filter.

    postgres_test.py CACHE_GUARD     exit status 0 passed, 1 failed; prints a line that starts with SKIP if a server is missing
"""
import glob
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request


def find(program, *places):
    """The path of a program, or None."""
    for place in places:
        for path in sorted(glob.glob(os.path.join(place, program))):
            return path
    return shutil.which(program)


def wait_until(what, condition):
    end = time.monotonic() + 30
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError("timeout: " + what)
        time.sleep(0.02)


def get(url):
    """Status and text."""
    try:
        with urllib.request.urlopen(url, timeout=30) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, ""


def metric(url, name):
    lines = get(url + "/metrics")[1].splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("cache_guard_" + name + " "))


def run(guard, initdb, redis):
    folder = tempfile.mkdtemp(prefix="bloomery-", dir="/tmp")  # a socket's path must be short
    as_user = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        user = pwd.getpwnam("postgres")
        os.chown(folder, user.pw_uid, user.pw_gid)
        as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    programs = []

    def start(words, **options):
        programs.append(subprocess.Popen(words, cwd=folder, **options))
        return programs[-1]

    try:
        bin_folder, data = os.path.dirname(initdb), folder + "/data"
        subprocess.run([initdb, "-D", data, "-U", "postgres", "-A", "trust", "--no-sync"], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL, **as_user)
        with open(folder + "/log", "wb") as log:
            start([bin_folder + "/postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"],
                  stderr=log, **as_user)
        conninfo = f"host={folder} user=postgres dbname=postgres"

        def sql(text):
            return subprocess.run([bin_folder + "/psql", "-qtA", conninfo, "-c", text], capture_output=True, text=True)

        wait_until("PostgreSQL", lambda: sql("SELECT 1").returncode == 0)
        made = sql("CREATE TABLE users (key TEXT PRIMARY KEY, value TEXT NOT NULL);"
                   "INSERT INTO users SELECT 'user-' || i, 'name of ' || i FROM generate_series(0, 11999) i")
        assert made.returncode == 0, made.stderr

        server = start([redis, "--port", "0", "--unixsocket", folder + "/s", "--save", ""], stdout=subprocess.DEVNULL)
        wait_until("Redis", lambda: os.path.exists(folder + "/s"))
        service = start([guard, "--postgres", conninfo, "--filter", f"unix://{folder}/s?name=users", "--port", "0"],
                        stdout=subprocess.PIPE, text=True)
        greeting = service.stdout.readline().strip()
        assert "without" not in greeting, greeting
        url = "http://" + greeting.split()[-1]

        for i in range(0, 12000, 400):  # of each batch that the table was read in
            assert get(f"{url}/users/user-{i}") == (200, f"name of {i}"), i
        for i in range(12000, 12200):
            assert get(f"{url}/users/user-{i}") == (404, ""), i
        assert metric(url, "database_queries_total") == 30 + metric(url, "false_positives_total")
        assert metric(url, "filter_negatives_total") >= 180

        post = urllib.request.Request(url + "/users/zoe", data=b"Zoe", method="POST")
        assert urllib.request.urlopen(post, timeout=30).status == 201
        assert sql("SELECT value FROM users WHERE key = 'zoe'").stdout.strip() == "Zoe"
        assert get(url + "/users/zoe") == (200, "Zoe")

        server.send_signal(signal.SIGKILL)
        server.wait()
        assert get(url + "/users/user-5") == (200, "name of 5")
        assert get(url + "/users/nobody") == (404, "")
    finally:
        for program in reversed(programs):
            if program.poll() is None:
                program.send_signal(signal.SIGINT)  # of PostgreSQL: at once, but in order
                program.wait()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    initdb = find("initdb", "/usr/lib/postgresql/*/bin")
    redis = find("redis-server", "/usr/bin")
    if initdb is None or redis is None:
        print("SKIP examples/cache_guard with PostgreSQL: no " + ("redis-server" if initdb else "PostgreSQL server"))
        return 0
    run(os.path.abspath(sys.argv[1]), initdb, redis)
    return 0


sys.exit(main())
