package hostlist

import "slices"

// PresetHosts returns the hosts of a preset.
func PresetHosts(name string) []string { return slices.Clone(presets[name]) }
