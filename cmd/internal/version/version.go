// Package version says from which version a program was built.
package version

import "runtime/debug"

// version is set by the linker if the build has no git information (Dockerfile).
var version string

// String returns the version that this program was built from.
func String() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	return info.Main.Version
}
