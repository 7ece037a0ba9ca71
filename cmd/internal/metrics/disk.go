package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
)

// disk reads at each scrape how full the disk is that holds a directory.
type disk struct {
	dir        string
	free, size *prometheus.Desc
}

// NewDisk registers the disk of a worker's state directory. While that is not there, nothing is shown of it.
func NewDisk(r prometheus.Registerer, dir string) {
	r.MustRegister(&disk{
		dir:  dir,
		free: prometheus.NewDesc("errand_disk_free_bytes", "What errand may still write to the disk of its state directory.", nil, nil),
		size: prometheus.NewDesc("errand_disk_size_bytes", "The size of that disk.", nil, nil),
	})
}

// Describe is the registry's.
func (d *disk) Describe(ch chan<- *prometheus.Desc) { ch <- d.free; ch <- d.size }

// Collect is the registry's.
func (d *disk) Collect(ch chan<- prometheus.Metric) {
	var s unix.Statfs_t
	if unix.Statfs(d.dir, &s) != nil {
		return
	}
	block := float64(s.Bsize)
	ch <- prometheus.MustNewConstMetric(d.free, prometheus.GaugeValue, float64(s.Bavail)*block)
	ch <- prometheus.MustNewConstMetric(d.size, prometheus.GaugeValue, float64(s.Blocks)*block)
}
