package config

import (
	"encoding/pem"
	"errors"
	"io/fs"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// readFiles makes the paths absolute and reads the two files that belong to the configuration: errand.yaml and the App's key.
// Absolute, because runs have another working directory than we do.
func (c *Config) readFiles(p *Problems, read readFunc) {
	c.Paths.State = absolute(p, "ERRAND_STATE_DIR", c.Paths.State)
	if strings.ContainsRune(c.Worker.Claude, filepath.Separator) {
		c.Worker.Claude = absolute(p, "ERRAND_CLAUDE", c.Worker.Claude)
	}
	c.readKey(p, read)
	c.readRouting(p, read)
}

// readKey loads the private key of the GitHub App.
func (c *Config) readKey(p *Problems, read readFunc) {
	const name = "GITHUB_APP_PRIVATE_KEY_FILE"
	file := c.GitHub.AppKeyFile
	switch text := strings.ReplaceAll(c.GitHub.AppKeyText.Reveal(), `\n`, "\n"); {
	case text != "" && file != "":
		p.add("GITHUB_APP_PRIVATE_KEY", "and GITHUB_APP_PRIVATE_KEY_FILE are both set", "unset one of them")
		return
	case text != "" && !isKey([]byte(text)):
		p.add("GITHUB_APP_PRIVATE_KEY", "holds no private key in PEM form", "set it to what is in the key's file, with \\n for each line end where there must be one line")
		return
	case text != "":
		c.GitHub.AppKey = Secret(text)
		return
	case file == "":
		return
	}
	if strings.ContainsAny(file, "\n") || strings.Contains(file, "-----") {
		c.GitHub.AppKeyFile = "" // so that Print does not show the key
		p.add(name, "holds a key, not the path of one", "save the key in a file that only errand can read and set the variable to its path")
		return
	}
	c.GitHub.AppKeyFile = absolute(p, name, file)
	data, err := read(c.GitHub.AppKeyFile)
	if err != nil {
		c.GitHub.AppKeyFile = ""
		p.add(name, "cannot be read ("+reason(err)+")", "correct the path, or let the user errand runs as read the file")
		return
	}
	if !isKey(data) {
		p.add(name, "is "+file+", which holds no private key in PEM form", "download the key again from the settings page of the App")
		return
	}
	c.GitHub.AppKey = Secret(data)
}

// isKey reports whether data is a private key in PEM.
func isKey(data []byte) bool {
	block, _ := pem.Decode(data)
	return block != nil && strings.HasSuffix(block.Type, "PRIVATE KEY")
}

// readRouting loads errand.yaml. Only a file that was asked for by name has to exist.
func (c *Config) readRouting(p *Problems, read readFunc) {
	const name = "ERRAND_CONFIG"
	file := c.Paths.File
	c.Paths.File = ""
	data, err := read(absolute(p, name, file))
	switch {
	case errors.Is(err, fs.ErrNotExist) && !slices.Contains(c.Given, name):
		return
	case err != nil:
		p.add(name, "is "+file+", which cannot be read ("+reason(err)+")", "correct the path, or unset it to use errand.yaml in the working directory if there is one")
		return
	}
	c.Paths.File = absolute(p, name, file)
	c.Routing = parseRouting(p, file, data)
	if site, err := url.Parse(c.GitHub.URL); err == nil {
		c.Routing.trimHost(site.Host)
	}
}

// keyLines returns the lines of a private key that are secret, and the key as a whole.
func keyLines(key Secret) []string {
	all := []string{key.Reveal()}
	for line := range strings.Lines(key.Reveal()) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") {
			all = append(all, line)
		}
	}
	return all
}

// reason drops the path from an error of the file system. What should be the path of a key may be the key.
func reason(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return err.Error()
}

// absolute returns the path absolute and clean.
func absolute(p *Problems, name, path string) string {
	abs, err := filepath.Abs(path)
	if err != nil { // only where the working directory is gone
		p.add(name, "cannot be made absolute ("+err.Error()+")", "write an absolute path")
		return path
	}
	return abs
}
