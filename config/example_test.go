package config

import "fmt"

// Load reports every problem at once.
func ExampleLoad() {
	env := map[string]string{"ERRAND_RUN_LIMIT": "2 hours"}
	_, err := Load(func(name string) string { return env[name] }, RoleWorker)
	fmt.Println(err)
	// Output:
	// configuration: 3 problems
	//   - ERRAND_RUN_LIMIT must be a duration like 90s, 15m or 2h30m, not "2 hours"
	//   - REDIS_URL is not set; set it to redis://:PASSWORD@HOST:6379/0, or run `worker -standalone`, which starts its own Redis
	//   - ANTHROPIC_API_KEY is not set; set it or another credential (docs/models.md)
}
