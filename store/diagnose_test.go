package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/internal/redisserver/redistest"
)

// brief returns findings without the texts for people.
func brief(found []Finding) (list []string) {
	for _, f := range found {
		list = append(list, string(f.Severity)+": "+f.What)
	}
	return list
}

// The diagnosis should report the server's current settings: a problem as soon as it exists, and none after the fix.
func TestDiagnose(t *testing.T) {
	t.Parallel()
	client := dial(t, redistest.Start(t))
	s, err := New(Config{Redis: client})
	if err != nil {
		t.Fatal(err)
	}
	check := func(want ...string) {
		t.Helper()
		found, err := s.Doctor.Diagnose(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, brief(found)); diff != "" {
			t.Error(diff)
		}
		for _, f := range found {
			if f.Why == "" || f.Remedy == "" {
				t.Errorf("%s: no reason or no remedy", f.What)
			}
		}
	}
	set := func(name, value string) {
		t.Helper()
		if err := client.ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	check("warning: Redis runs without appendonly")
	set("appendonly", "yes")
	check("note: Redis runs with appendfsync everysec")
	set("appendfsync", "no")
	check("warning: Redis runs with appendfsync no")
	set("appendfsync", "always")
	check()
	set("maxmemory-policy", "allkeys-lru")
	check("warning: Redis runs with maxmemory-policy allkeys-lru")
	set("maxmemory", "1gb")
	check("error: Redis runs with maxmemory-policy allkeys-lru")
	set("maxmemory-policy", "noeviction")
	if _, m, err := s.Doctor.Examine(t.Context()); m.Used <= 0 || m.Limit != 1<<30 || err != nil {
		t.Errorf("memory: %+v, %v", m, err)
	}
	set("maxmemory-policy", "allkeys-lru")
	set("appendonly", "no") // otherwise Redis would first write the file before it exits
	check("error: Redis runs with maxmemory-policy allkeys-lru", "warning: Redis runs without appendonly")
	_ = client.Close()
	if _, err := s.Doctor.Diagnose(t.Context()); err == nil {
		t.Error("no error although Redis does not answer")
	}
}

// An in-memory Redis lacks these settings, so they should not be reported.
func TestDiagnoseInMemory(t *testing.T) {
	onMini(t, func(h *harness) {
		found, err := h.store(Config{}).Doctor.Diagnose(h.Context())
		if diff := cmp.Diff([]string{
			"warning: Redis is in memory, within this program", "error: " + OpenRedis,
		}, brief(found)); diff != "" || err != nil {
			h.Error(diff, err)
		}
	})
}

func TestDiagnoseWhatAServerSays(t *testing.T) {
	t.Parallel()
	const memory = "redis_version:7.0.1\r\naof_enabled:1\r\nappendfsync:always\r\nused_memory_human:8.10K\r\nmaxmemory_human:10.00K\r\n"
	for info, want := range map[string]string{
		memory +
			"used_memory:8100\r\nmaxmemory:10000": "warning: Redis uses 8.10K of 10.00K (maxmemory)",
		memory + "used_memory:8000\r\nmaxmemory:10000":                                            "",
		memory + "used_memory:8100\r\nmaxmemory:0":                                                "",
		"redis_version:6.0.16\r\naof_enabled:1\r\nappendfsync:always":                             "error: Redis is version 6.0.16",
		"redis_version:6.2.0\r\naof_enabled:1\r\nappendfsync:always":                              "",
		"redis_version:10.0.1\r\naof_enabled:1\r\nappendfsync:always":                             "",
		"redis_version:7.0.1\r\nrole:slave\r\naof_enabled:1\r\nappendfsync:always":                "error: Redis is a replica",
		"redis_version:7.0.1\r\ncluster_enabled:1\r\naof_enabled:1\r\nappendfsync:always":         "error: Redis is a cluster",
		"redis_version:7.0.1\r\naof_enabled:1":                                                    "note: appendfsync cannot be asked for",
		"redis_version:7.0.1\r\naof_enabled:1\r\naof_last_write_status:err\r\nappendfsync:always": "error: Redis cannot write its append-only file",
	} {
		if got := brief(diagnose(parseInfo("# Server\r\n" + info + "\r\n"))); len(got) > 1 ||
			len(got) == 1 && got[0] != want || len(got) == 0 && want != "" {
			t.Errorf("%q: %q, want %q", info, got, want)
		}
	}
	for ahead, want := range map[time.Duration]string{
		4 * time.Second: "", -4 * time.Second: "",
		7 * time.Second: "warning: this machine's clock is 7s ahead of Redis'",
		-time.Minute:    "warning: this machine's clock is 1m0s behind Redis'",
	} {
		if got := brief(skewed(ahead)); len(got) > 1 || len(got) == 1 && got[0] != want || len(got) == 0 && want != "" {
			t.Errorf("%v: %q, want %q", ahead, got, want)
		}
	}
}
