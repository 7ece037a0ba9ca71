package sandbox

import (
	"strings"
	"testing"
	"testing/fstest"
)

// The remedy names everything that forbids the sandbox here, and nothing else.
func TestRemedies(t *testing.T) {
	t.Parallel()
	const (
		docker   = "docker-default (enforce)\n"
		filtered = "Name:\tworker\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n"
		refused  = "bwrap: Creating new namespace failed: Operation not permitted"
	)
	const (
		proc, limit, debian, ubuntu = "procMount", "user.max_user_namespaces", "unprivileged_userns_clone=1", "restrict_"
		apparmor, seccomp, unknown  = "apparmor=unconfined", "deploy/seccomp.json", "allow user namespaces"
	)
	for name, c := range map[string]struct {
		proc    map[string]string
		printed string
		want    []string
	}{
		"nothing known": {nil, refused, []string{unknown}},
		"masked": {
			map[string]string{"self/status": filtered, "self/attr/apparmor/current": "unconfined\n"},
			"bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
			[]string{proc},
		},
		"Docker": {
			map[string]string{"self/status": filtered, "self/attr/apparmor/current": docker},
			refused,
			[]string{apparmor, seccomp},
		},
		"Debian": {map[string]string{"sys/kernel/unprivileged_userns_clone": "0\n"}, refused, []string{debian}},
		"Ubuntu": {
			map[string]string{
				"sys/kernel/apparmor_restrict_unprivileged_userns": "1\n", "sys/user/max_user_namespaces": "9\n",
			}, refused, []string{ubuntu},
		},
		"none at all": {map[string]string{"sys/user/max_user_namespaces": "0\n"}, refused, []string{limit}},
	} {
		files := fstest.MapFS{}
		for file, text := range c.proc {
			files[file] = &fstest.MapFile{Data: []byte(text)}
		}
		got := remedies(files, c.printed)
		for _, one := range []string{proc, limit, debian, ubuntu, apparmor, seccomp, unknown} {
			wanted := false
			for _, w := range c.want {
				wanted = wanted || w == one
			}
			if strings.Contains(got, one) != wanted {
				t.Errorf("%s: %q in %q: want %v", name, one, got, wanted)
			}
		}
	}
}
