"""Being written."""
from operant.envs.simple import SimpleEnvManager as SubProcEnvManager
