package store

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// oldest is the first version with the commands that the store uses: GETEX, ZRANGE with BYLEX and REV, XRANGE with an
// exclusive start.
const oldest = "6.2"

// evicts is the start of the text of the [Finding] about a Redis that drops keys when its memory is full.
const evicts = "Redis runs with maxmemory-policy "

// parseInfo parses the reply to Redis' INFO.
func parseInfo(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// diagnose checks the fields of INFO, and the setting appendfsync if it is known.
func diagnose(server map[string]string) (found []Finding) {
	add := func(level Severity, what, why, remedy string) {
		found = append(found, Finding{level, what, why, remedy})
	}
	if server["redis_version"] == "" {
		add(Warning, "Redis is in memory, within this program", "Tasks do not survive its exit.",
			"Install redis-server, or set REDIS_URL.")
		return found // it has none of these settings
	}
	if v := server["redis_version"]; before(v, oldest) {
		add(Fatal, "Redis is version "+v, "The store uses commands that it does not have.",
			"Run Redis "+oldest+" or newer.")
	}
	if server["role"] == "slave" {
		add(Fatal, "Redis is a replica", "It takes no writes.", "Point REDIS_URL to the primary.")
	}
	if server["cluster_enabled"] == "1" {
		add(Fatal, "Redis is a cluster", "A step of the store spans keys that a cluster keeps apart.",
			"Run a single Redis, with replicas if need be.")
	}
	if policy := cmp.Or(server["maxmemory_policy"], "noeviction"); policy != "noeviction" {
		level, when := Fatal, "When memory is full"
		if server["maxmemory"] == "0" {
			level, when = Warning, "Once maxmemory is set and reached"
		}
		add(level, evicts+policy, when+" Redis drops live tasks, leases and claims, without a word.",
			"Set maxmemory-policy noeviction.")
	}
	if m := memoryOf(server); m.Limit > 0 && float64(m.Used) > nearlyFull*float64(m.Limit) {
		add(Warning, fmt.Sprintf("Redis uses %s of %s (maxmemory)", server["used_memory_human"],
			server["maxmemory_human"]), "When that is full, Redis refuses writes: no task can be submitted or ended.",
			"Raise maxmemory, or set ERRAND_OBJECTS.")
	}
	return append(found, persistence(server)...)
}

// persistence checks what a restart of Redis would lose.
func persistence(server map[string]string) []Finding {
	one := func(level Severity, what, why, remedy string) []Finding { return []Finding{{level, what, why, remedy}} }
	if server["aof_enabled"] != "1" {
		return one(Warning, "Redis runs without appendonly",
			"A restart of Redis loses all tasks since its last snapshot, if it takes any.",
			"Set appendonly yes, and keep its directory on a volume.")
	}
	if server["aof_last_write_status"] == "err" {
		return one(Fatal, "Redis cannot write its append-only file", "Redis refuses all writes until it can.",
			"Look at its disk and its log.")
	}
	switch server["appendfsync"] {
	case "always":
		return nil
	case "everysec":
		return one(Note, "Redis runs with appendfsync everysec", "A crash of Redis or of its machine loses up to 2 s.",
			"Set appendfsync always if that is too much: each step then waits for the disk.")
	case "no":
		return one(Warning, "Redis runs with appendfsync no",
			"A crash of Redis' machine loses what the system had not written yet, often 30 s.",
			"Set appendfsync everysec or always.")
	default:
		return one(Note, "appendfsync cannot be asked for", "It says how much a crash of Redis' machine loses.",
			"Look at its configuration.")
	}
}

// before reports whether version a is older than b, comparing number by number.
func before(a, b string) bool {
	return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(x, y string) int {
		m, _ := strconv.Atoi(x)
		n, _ := strconv.Atoi(y)
		return cmp.Compare(m, n)
	}) < 0
}

// nearlyFull is the share of maxmemory above which Redis' memory is reported.
const nearlyFull = 0.8

// Memory is what Redis uses, in bytes, and its setting maxmemory.
type Memory struct {
	Used  int64 // 0: unknown
	Limit int64 // 0: none, or unknown
}

func memoryOf(server map[string]string) (m Memory) {
	m.Used, _ = strconv.ParseInt(server["used_memory"], 10, 64)
	m.Limit, _ = strconv.ParseInt(server["maxmemory"], 10, 64)
	return m
}
