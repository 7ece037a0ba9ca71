package display

import (
	"slices"
	"strings"
	"unicode"
)

// Characters that join or shape their neighbours, and otherwise show nothing.
const (
	nonJoiner  = '\u200c'
	joiner     = '\u200d'
	emojiStyle = '\ufe0f'
	keycap     = '\u20e3'
)

// Words removes the characters of a message that show nothing, which can hide words from people or split them for
// filters. What letters and emoji need stays: one joiner behind a letter of a script that joins letters, and the signs
// within an emoji.
func Words(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if !strings.ContainsFunc(s, isSilent) {
		return s
	}
	all := []rune(s)
	kept := make([]rune, 0, len(all))
	for i, r := range all {
		if !isSilent(r) || isNeeded(kept, r, all[i+1:]) {
			kept = append(kept, r)
		}
	}
	return string(kept)
}

// isSilent reports whether a character shows nothing by itself. Those of the Arabic numbers and verses show something,
// although Unicode counts them among its format characters.
func isSilent(r rune) bool {
	if r == '\n' || r == '\t' || unicode.Is(unicode.Prepended_Concatenation_Mark, r) {
		return false
	}
	return unicode.IsControl(r) ||
		unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// isNeeded reports whether the characters around a silent one need it.
func isNeeded(before []rune, r rune, after []rune) bool {
	if len(before) == 0 {
		return false
	}
	last, next := before[len(before)-1], rune(0)
	if len(after) > 0 {
		next = after[0]
	}
	switch r {
	case joiner:
		return isSymbol(last) && isSymbol(next) || joinsLetters(before)
	case nonJoiner:
		return joinsLetters(before)
	case emojiStyle:
		return last != emojiStyle && isSymbol(last) ||
			next == keycap && (strings.ContainsRune("#*", last) || unicode.IsDigit(last))
	case '\u180b', '\u180c', '\u180d', '\u180f': // forms of Mongolian letters
		return joinsLetters(before)
	}
	return false
}

// isSymbol reports whether a character can be part of an emoji.
func isSymbol(r rune) bool {
	return r == emojiStyle ||
		r > unicode.MaxASCII && unicode.In(r, unicode.Common) && !unicode.IsSpace(r) && !isSilent(r)
}

// maxMarks bounds the marks on one letter that count. Looking back over any number takes quadratic time.
const maxMarks = 16

// joinsLetters reports whether the last letter is of a script that joins letters. The marks of such a script may be
// those of several.
func joinsLetters(before []rune) bool {
	for _, r := range slices.Backward(before[max(0, len(before)-1-maxMarks):]) {
		if unicode.In(r, unicode.Inherited) && unicode.IsMark(r) && !isSilent(r) {
			continue
		}
		return (unicode.IsLetter(r) || unicode.IsMark(r)) &&
			!unicode.In(r, unicode.Common, unicode.Inherited, unicode.Latin, unicode.Greek, unicode.Cyrillic,
				unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
	}
	return false
}
