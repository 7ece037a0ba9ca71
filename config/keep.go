package config

import (
	"fmt"
	"time"
)

// Keep is how long a worker's disk keeps what is not used any more. 0 = for ever, or any amount.
type Keep struct {
	Logs     time.Duration `env:"ERRAND_KEEP_LOGS" envDefault:"720h"`   // since the last write
	LogsGB   int           `env:"ERRAND_KEEP_LOGS_GB" envDefault:"5"`   // of all of them, in 10^9 bytes
	Clones   time.Duration `env:"ERRAND_KEEP_CLONES" envDefault:"168h"` // since the thread's last run
	ClonesGB int           `env:"ERRAND_KEEP_CLONES_GB" envDefault:"50"`
}

func (k Keep) check(p *Problems) {
	if k.Logs < 0 || k.Clones < 0 {
		p.add("ERRAND_KEEP_LOGS", fmt.Sprintf("or ERRAND_KEEP_CLONES is below 0 (%v, %v)", k.Logs, k.Clones), "write durations like 720h, or 0s to keep all")
	}
	if k.LogsGB < 0 || k.ClonesGB < 0 {
		p.add("ERRAND_KEEP_LOGS_GB", fmt.Sprintf("or ERRAND_KEEP_CLONES_GB is below 0 (%d, %d)", k.LogsGB, k.ClonesGB), "write whole numbers, or 0 for no limit")
	}
}
