"""The shared parts of the tests of samples."""

READ = {"node": "county", "target": "radon", "features": ["floor", "uranium"], "weights": "w", "offset": "o"}


def check_message(caught, parts):
    for part in parts:
        assert part in str(caught.value)


MISREAD = {
    "typo": ({"target": "radom"}, ["no column 'radom'", "did you mean 'radon'"]),
    "unknown": ({"features": ["zzz"]}, ["no column 'zzz'", "'county'"]),
    "node typo": ({"node": "country"}, ["no column 'country'", "did you mean 'county'"]),
    "weights typo": ({"weights": "ww"}, ["no column 'ww'"]),
    "repeated feature": ({"features": ["floor", "floor"]}, ["feature 'floor'", "twice"]),
    "repeated target": ({"target": ["radon", "radon"]}, ["target 'radon'", "twice"]),
    "target among features": ({"features": ["floor", "radon"]}, ["target 'radon'", "among the features"]),
    "list as node": ({"node": ["county"]}, ["['county']", "one label"]),
}
