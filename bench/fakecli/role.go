package fakecli

// RoleVariable is the environment variable with the role of a re-executed benchmark program. It is not an argument, so
// that the fake can be started like the real CLI.
const RoleVariable = "ERRAND_BENCH_ROLE"

// The roles in this package.
const (
	CLI  = "cli"  // Main
	Tool = "tool" // ToolMain
)
