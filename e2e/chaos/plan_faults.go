package main

import (
	"math/rand/v2"
	"slices"
	"time"
)

// kind is the kind of a fault, as the report names it.
type kind string

const (
	killWorker   kind = "worker killed"
	termWorker   kind = "worker stopped"
	freezeWorker kind = "worker frozen"
	killKeeper   kind = "keeper killed"
	killCLI      kind = "CLI killed"
	restartRedis kind = "redis restarted"
	killRedis    kind = "redis killed"
	freezeRedis  kind = "redis frozen"
	partition    kind = "worker cut off"
	fullRedis    kind = "redis out of memory"
	lockedRedis  kind = "redis read-only"
	emptyRedis   kind = "redis emptied"
	clockJumps   kind = "redis' clock jumps"
	fullDisk     kind = "log disk full"
	noInodes     kind = "log disk without inodes"
	slowDisk     kind = "log disk stalls"
	objectsAway  kind = "object store away"
	restartDoor  kind = "front door restarted"
	killDoor     kind = "front door killed"
	slackFails   kind = "slack fails"
	githubFails  kind = "github fails"
	modelFails   kind = "model fails"
)

// fault is one planned fault.
type fault struct {
	at     time.Duration
	kind   kind
	lasts  time.Duration // until it ends, or its process starts again
	pick   uint64        // chooses among the targets at that time
	manner manner        // how a service fails
}

// manner is how an HTTP service fails once.
type manner string

const (
	tooMany    manner = "429"
	broken     manner = "500"
	away       manner = "503"
	overloaded manner = "529" // the model's own
	exhausted  manner = "usage limit"
	reset      manner = "reset"
	lost       manner = "answer lost" // the request has its effect
	timeout    manner = "time-out"
)

var (
	webManners   = []weighted[manner]{{4, tooMany}, {3, broken}, {2, away}, {3, reset}, {9, lost}, {1, timeout}}
	modelManners = []weighted[manner]{
		{3, tooMany}, {3, broken}, {2, away}, {2, overloaded}, {4, reset}, {2, lost}, {1, timeout},
	}
)

// The number of faults for each usage limit, which stops the whole fleet for minutes, and for each time that Redis
// loses all its data.
const (
	faultsPerLimit = 300
	faultsPerEmpty = 300
)

// planFaults plans faults by weight. It starts with one of each kind, so that a short run has all of them.
func planFaults(r *rand.Rand, set settings) []fault {
	span := set.span
	kinds := []weighted[kind]{
		{9, killWorker},
		{5, termWorker},
		{3, freezeWorker},
		{13, killKeeper},
		{16, killCLI},
		{2, restartRedis},
		{3, killRedis},
		{2, freezeRedis},
		{2, partition},
		{1, fullRedis},
		{1, lockedRedis},
		{2, clockJumps},
		{2, fullDisk},
		{1, noInodes},
		{2, slowDisk},
		{3, objectsAway},
		{2, restartDoor},
		{2, killDoor},
		{16, slackFails},
		{8, githubFails},
		{18, modelFails},
	}
	var without []kind
	if set.sentinel { // every address leads to the master, and each fault of Redis is a fail-over
		without = []kind{partition, fullRedis, lockedRedis, clockJumps}
	}
	if set.once { // its logs are on the disk of its container
		without = append(without, fullDisk, noInodes, slowDisk)
	}
	if set.s3 == "" {
		without = append(without, objectsAway)
	}
	kinds = slices.DeleteFunc(kinds, func(k weighted[kind]) bool { return slices.Contains(without, k.thing) })
	order := r.Perm(len(kinds))
	var faults []fault
	for i, at := range moments(r, set.faults, span*95/100) {
		f := fault{at: at, pick: r.Uint64()}
		if i < len(order) {
			f.kind = kinds[order[i]].thing
		} else {
			f.kind = choose(r, kinds)
		}
		f.lasts, f.manner = detail(r, f.kind)
		f.lasts = min(f.lasts, span/8) // leave time for other faults in a short run
		if i%faultsPerLimit == faultsPerLimit/2 {
			f.kind, f.manner = modelFails, exhausted
		}
		if i%faultsPerEmpty == faultsPerEmpty*2/3 && !set.sentinel {
			f.kind, f.manner = emptyRedis, ""
		}
		faults = append(faults, f)
	}
	return faults
}

// detail sets the duration or manner of a fault. Long freezes and cuts are rare, because other faults wait for them.
func detail(r *rand.Rand, k kind) (time.Duration, manner) {
	switch k {
	case killWorker, termWorker:
		return between(r, 500*time.Millisecond, 8*time.Second), ""
	case restartRedis, killRedis, restartDoor, killDoor:
		return between(r, 100*time.Millisecond, 3*time.Second), ""
	case freezeWorker: // up to and beyond the time of a takeover
		return between(r, 3*time.Second, 45*time.Second), ""
	case freezeRedis:
		if r.IntN(5) == 0 {
			return between(r, 20*time.Second, 45*time.Second), ""
		}
		return between(r, time.Second, 12*time.Second), ""
	case partition, clockJumps:
		return between(r, 5*time.Second, 40*time.Second), ""
	case fullRedis, lockedRedis, fullDisk, noInodes, slowDisk:
		return between(r, 2*time.Second, 10*time.Second), ""
	case objectsAway:
		return between(r, 2*time.Second, 20*time.Second), choose(r,
			[]weighted[manner]{{3, away}, {3, reset}, {1, timeout}})
	case slackFails, githubFails:
		return 0, choose(r, webManners)
	case modelFails:
		return 0, choose(r, modelManners)
	}
	return 0, ""
}
