package environment_test

import (
	"fmt"

	"github.com/errand-fleet/errand/environment"
)

func ExampleParse() {
	d, wrong := environment.Parse([]byte("env:\n  GOFLAGS: -mod=mod\n  HOME: /root\n"))
	d = d.Under(environment.Declaration{Env: map[string]string{"GOPROXY": "off"}})
	fmt.Println(d.Env)
	fmt.Println(wrong)
	// Output:
	// map[GOFLAGS:-mod=mod GOPROXY:off]
	// [env: HOME is set by errand.]
}
