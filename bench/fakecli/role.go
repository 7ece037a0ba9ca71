package fakecli

// RoleVariable says in the environment which part a program plays that measures and was re-executed. It is no argument, so that the
// fake can be started by anybody as the real CLI is.
const RoleVariable = "ERRAND_BENCH_ROLE"

// The parts that this package plays.
const (
	CLI  = "cli"  // Main
	Tool = "tool" // ToolMain
)
