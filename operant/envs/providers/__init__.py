"""Where environments come from: Gymnasium, Atari, EnvPool, MinAtar; `catalog` knows all ids."""
