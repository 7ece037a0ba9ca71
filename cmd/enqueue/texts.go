package main

import (
	_ "embed"
	"io"
	"text/template"
)

// helpText has the long texts for people.
//
//go:embed help.txt
var helpText string

var helpTexts = template.Must(template.New("").Funcs(template.FuncMap{"program": program}).Parse(helpText))

// printText prints a text of help.txt.
func printText(w io.Writer, name string, data any) { _ = helpTexts.ExecuteTemplate(w, name, data) }
