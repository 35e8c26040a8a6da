"""Bloom filters of RedisBloom and valkey-bloom: files that the modules wrote, see record_redisbloom.py and
record_valkey_bloom.py in tests/golden/foreign."""

import base64
import os
import unittest
from pathlib import Path

from redis_server import RedisTest, ServerError
from support import CommandTest, keys, text

RECORDED = Path(os.environ["BLOOMERY_SOURCE"]) / "tests/golden/foreign"
HERE = keys(300) + ["Zürich".encode(), "布隆过滤器".encode(), b"a key with spaces, which is longer than two blocks of sixteen bytes"]
OTHERS = keys(20_000, "other")
DUMPS = "redisbloom", "redisbloom_fixed", "redisbloom_sparse", "redisbloom_power"
LAYERS = "redisbloom_layers", "redisbloom_layers_chunks"
OF_VALKEY = "valkey_bloom", "valkey_bloom_fixed", "valkey_bloom_sparse", "valkey_bloom_layers"


def recorded(name: str) -> bytes:
    return (RECORDED / name).read_bytes()


class Recorded(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        for name in DUMPS + LAYERS + OF_VALKEY:
            self.write(name, recorded(f"{name}.filter"))

    def test_check_answers_as_the_server(self) -> None:
        for name in DUMPS + LAYERS + OF_VALKEY:
            with self.subTest(name):
                self.assertEqual(self.bloomery("check", name, stdin=text(HERE)).out, text(HERE))
                self.assertEqual(self.bloomery("check", name, stdin=text(OTHERS), status=None).out, recorded(f"{name}.positives"))

    def test_a_dump_states_its_capacity_and_target(self) -> None:
        facts = self.bloomery("info", "--json", "redisbloom_sparse").json

        self.assertEqual((facts["format"], facts["scheme"]), ("redisbloom", "redisbloom"))
        self.assertEqual((facts["capacity"], facts["target_rate"], facts["fpr_verdict"]), (10_000, 0.001, "kept"))
        self.assertEqual(facts["inserted"], 303)

    def test_an_imported_filter_takes_keys_and_goes_back(self) -> None:
        for name in "redisbloom", "valkey_bloom_fixed":
            with self.subTest(name):
                self.bloomery("import", "-q", name, "-o", "own")
                self.bloomery("add", "-q", "own", stdin=b"Madrid\n")
                self.bloomery("export", "-q", "own", "--to", name.removesuffix("_fixed"), "-o", "back")

                self.assertEqual(self.bloomery("check", "back", stdin=b"Madrid\n").out, b"Madrid\n")
                self.assertEqual(self.bloomery("info", "--json", "back").json["inserted"], 304)

    def test_filters_of_one_module_are_not_converted_for_the_other(self) -> None:
        self.bloomery("import", "-q", "valkey_bloom", "-o", "own")

        self.refused("export", "own", "--to", "redisbloom", "-o", "no", says="valkey_bloom")
        self.refused("import", "--from", "redisbloom", "valkey_bloom", "-o", "no", says="expected MBbloom--, found bloomfltr")

    def test_a_random_seed_of_valkey_is_kept_and_shown(self) -> None:
        [random] = self.bloomery("info", "--json", "valkey_bloom").json["salts"]
        fixed = self.bloomery("info", "--json", "valkey_bloom_fixed").json["salts"]

        self.assertEqual(len(base64.b64decode(random["base64"])), 32)
        self.assertIn(base64.b64decode(random["base64"]), recorded("valkey_bloom.filter"))
        self.assertIsNone(fixed)
        self.assertIn(f"salts         1 drawn: base64 {random['base64']}\n", self.bloomery("info", "valkey_bloom").out.decode())
        self.refused("union", "-o", "no", "valkey_bloom", "valkey_bloom_fixed", says="found salt 1: .* and none")

    def test_layers_of_valkey_share_no_target(self) -> None:
        facts = self.bloomery("info", "--json", "valkey_bloom_layers").json

        self.assertEqual((facts["layers"], facts["target_rate"], facts["capacity"]), (3, 0.01, 100))
        positives = len(recorded("valkey_bloom_layers.positives").splitlines())
        self.assertLess(abs(positives - 20_000 * facts["rate_now"]), 5 * positives**0.5)

    def test_a_filter_that_has_grown_is_opened_with_all_layers(self) -> None:
        for name in LAYERS:
            with self.subTest(name):
                facts = self.bloomery("info", "--json", name).json
                shown = self.bloomery("info", name).out.decode()

                self.assertEqual((facts["layers"], facts["inserted"], facts["target_rate"]), (3, 303, 0.01))
                self.assertEqual(facts["fpr_verdict"], "kept")
                positives = len(recorded(f"{name}.positives").splitlines())
                self.assertLess(abs(positives - 20_000 * facts["rate_now"]), 5 * positives**0.5)
                self.assertIn("3 layers", shown)
                self.assertIn("capacity      100 keys in the first layer; 1% for all layers\n", shown)
                self.assertRegex(shown, r"\nestimated FPR 0\.\d+%, from the bits\n")
                self.assertNotIn("forecast", shown)  # it grows: its FPR does not follow from a number of keys
                explained = self.bloomery("explain", name, "key-7").out.decode()
                self.assertRegex(explained, r"(?s)key-7: maybe present\n  layer 2\n.*not in this layer.*\n  layer 1\n.*\n  layer 0\n(  bit [\d,]+ +set\n){8}\Z")
                layers = self.bloomery("explain", "--json", name, "key-7").json["keys"][0]["layers"]
                self.assertEqual([layer["layer"] for layer in layers], [2, 1, 0])
                self.assertTrue(any(all(bit["set"] for bit in layer["bits"]) for layer in layers))
                self.write("present", HERE)
                verified = self.bloomery("verify", "--json", name, "--present", "present").json
                self.assertEqual((verified["present"]["keys"], verified["present"]["missing"]), (303, 0))
                self.assertIsNone(verified["certified"])
                verdict = self.bloomery("verify", name).out.decode()
                self.assertIn(f"{name}: 1.12 KiB in 3 layers (scheme redisbloom); the first for 100 keys\nestimated FPR 0.", verdict)
                self.assertIn("not compared with the bits, because the layers share their hashes", verdict)

    def test_what_needs_one_layer_refuses_several(self) -> None:
        for name in LAYERS:
            with self.subTest(name):
                self.refused("import", name, "-o", "no", says="layers cannot be converted: expected 1 layer, found 3 layers")
                self.refused("export", name, "--to", "redisbloom", "-o", "no", says="several layers")
                self.refused("union", "-o", "no", name, name, says="several layers")
                self.refused("push", name, "redis://127.0.0.1:1/f", says="other bits than the filters")
                self.refused("add", name, stdin=b"Madrid\n", says="reading only")
        self.assertFalse(os.path.exists(self.path("no")))


class ARealServer(RedisTest):
    """The recipe of docs/formats.md, with a server that has no module."""

    def test_shared_filters_have_other_bits(self) -> None:
        self.write("dump", recorded("redisbloom.filter") + b"\n")
        self.bloomery("import", "-q", "dump", "-o", "own")

        self.refused("push", "own", self.f, says="scheme redisbloom")

        self.bloomery("build", "-q", "-o", self.f, "-n", 400, stdin=text(HERE))
        self.assertEqual(self.bloomery("check", self.f, stdin=text(HERE)).out, text(HERE))

    def test_a_server_without_the_module_refuses_a_dump(self) -> None:
        with self.assertRaises(ServerError):
            self.redis("RESTORE", "users", 0, recorded("redisbloom.filter"))


if __name__ == "__main__":
    unittest.main()
