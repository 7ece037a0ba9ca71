package session

import (
	"fmt"
	"strings"
)

// The tools below write the call and its result, once for the model and once structured for programs, as the CLI does.

func (w *writer) read(tool string) {
	file := w.file()
	w.use(tool, "Read", fmt.Sprintf(`{"file_path":%s}`, quote(file)))
	text := w.text(w.between(1<<10, 30<<10))
	var numbered strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		n++
		fmt.Fprintf(&numbered, "%d\t%s", n, line)
	}
	w.result(tool, quote(numbered.String()), fmt.Sprintf(
		`{"type":"text","file":{"filePath":%s,"content":%s,"numLines":%d,"startLine":1,"totalLines":%d}}`, quote(file),
		quote(text), n, n))
}

// bash runs a command. Every fourth one is so long that the CLI makes a task of it, and some print a secret.
func (w *writer) bash(tool string) {
	w.use(tool, "Bash", fmt.Sprintf(`{"command":%s,"description":"run it"}`, quote(w.text(w.between(20, 600)))))
	task := w.uuid()[:8]
	long := w.random.IntN(4) == 0
	if long {
		w.line(taskStartedLine, task, tool)
		w.line(progressLine, tool, tool)
		w.line(taskEndedLine, task, tool)
	}
	text := w.text(w.between(1<<10, 30<<10))
	if w.random.IntN(16) == 0 {
		secrets := Secrets()
		text += "\nTOKEN=" + secrets[w.random.IntN(len(secrets))] + "\n"
	}
	w.result(tool, quote(text), fmt.Sprintf(
		`{"stdout":%s,"stderr":"","interrupted":false,"isImage":false,"noOutputExpected":false}`, quote(text)))
}

// edit changes a large file; the CLI includes the whole original.
func (w *writer) edit(tool string) {
	file, before, after := w.file(), w.text(200), w.text(200)
	w.use(tool, "Edit", fmt.Sprintf(`{"file_path":%s,"old_string":%s,"new_string":%s}`, quote(file),
		quote(before), quote(after)))
	w.result(tool, quote("The file "+file+" has been updated successfully."), fmt.Sprintf(
		`{"filePath":%s,"oldString":%s,"newString":%s,"originalFile":%s,"structuredPatch":[],"userModified":false,"replaceAll":false}`,
		quote(file), quote(before), quote(after), quote(w.text(w.between(2<<20, 6<<20)))))
}

// image reads a picture.
func (w *writer) image(tool string) {
	w.use(tool, "Read", `{"file_path":"/srv/clone/docs/screenshot.png"}`)
	data := w.base64(w.between(600<<10, 3<<20))
	w.result(tool, fmt.Sprintf(`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}]`,
		data),
		fmt.Sprintf(`{"type":"image","file":{"base64":"%s","type":"image/png","originalSize":%d}}`, data,
			len(data)*3/4))
}

func (w *writer) result(tool, content, structured string) {
	w.line(userLine, tool, content, structured, tool)
}

// Secrets are eight credentials of a worker. The session contains some of them.
func Secrets() []string {
	secrets := make([]string, 8)
	for i := range secrets {
		secrets[i] = fmt.Sprintf("bench-credential-%d-4f1d0c7a9b3e5286", i)
	}
	return secrets
}
