package sandbox

import (
	"io/fs"
	"strings"
)

// remedies says what to change so that bubblewrap works, given what it printed and the machine's /proc. Several things
// may forbid it at once, and each of them hides the next, so all that are known are listed.
func remedies(proc fs.FS, printed string) string {
	is := func(file, value string) bool {
		text, err := fs.ReadFile(proc, file)
		return err == nil && strings.TrimSpace(string(text)) == value
	}
	// A new /proc may show no more than the old one, over which an engine mounts empty files.
	if strings.Contains(printed, "mount proc") {
		return "show the container a whole /proc: systempaths=unconfined for Docker, unmask=ALL for Podman, " +
			"procMount: Unmasked and hostUsers: false on Kubernetes (docs/security.md)"
	}
	var list []string
	if is("sys/user/max_user_namespaces", "0") {
		list = append(list, "raise the sysctl user.max_user_namespaces of the machine")
	}
	if is("sys/kernel/unprivileged_userns_clone", "0") {
		list = append(list, "set the sysctl kernel.unprivileged_userns_clone=1 on the machine")
	}
	if is("sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
		list = append(list, "let AppArmor permit user namespaces, with the sysctl "+
			"kernel.apparmor_restrict_unprivileged_userns=0 or the profile deploy/apparmor")
	}
	label, _ := fs.ReadFile(proc, "self/attr/apparmor/current") // not every kernel has it
	if name, mode, confined := strings.Cut(string(label), " "); confined && strings.HasPrefix(mode, "(enforce)") {
		list = append(list, "start the container with another AppArmor profile than "+name+
			": apparmor=unconfined for Docker, appArmorProfile: Unconfined on Kubernetes")
	}
	status, _ := fs.ReadFile(proc, "self/status")
	if strings.Contains(string(status), "\nSeccomp:\t2\n") {
		list = append(list, "start the container with the seccomp profile deploy/seccomp.json")
	}
	if len(list) == 0 {
		list = append(list, "allow user namespaces")
	}
	return strings.Join(list, "; ") + " (docs/security.md)"
}
