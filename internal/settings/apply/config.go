package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"backstop/internal/settings"
	"backstop/internal/supplier"

	"gopkg.in/yaml.v3"
)

const (
	// maxKeyFile bounds the file of one "file:" in bytes: a chain of certificates is a tenth
	// of it.
	maxKeyFile = 64 << 10
	// maxKeyFiles bounds all these files together.
	maxKeyFiles = 8 << 20
	// maxNesting bounds the depth of a config; the deepest kind has two levels.
	maxNesting = 8
	filePrefix = "file:"
)

func newKeyFiles(dir string) *keyFiles { return &keyFiles{dir: dir, texts: map[string]string{}} }

// keyFiles reads the files of "file:PATH", relative to the folder of the applied file, each
// path once.
type keyFiles struct {
	dir    string
	texts  map[string]string
	total  int
	sealed bool // use only texts: read no file
	// kept are the stored secrets of an edit, by field; nil = the values are those of a file.
	kept map[string]settings.Secret
}

// keptPrefix marks a stored secret that an edit leaves as it is: "stored:api_key".
const keptPrefix = "stored:"

// keeps returns the stored secret that a value of an edit refers to.
func (k *keyFiles) keeps(text string) (s settings.Secret, ok bool) {
	if field, is := strings.CutPrefix(text, keptPrefix); is {
		s, ok = k.kept[field]
	}
	return s, ok
}

// read returns the file's text without the line breaks at its end, which editors add and keys
// do not have. Errors never contain the text.
func (k *keyFiles) read(path string) (string, error) {
	switch text, ok := k.texts[path]; {
	case k.kept != nil:
		return "", errors.New("only the command apply reads files: give the value itself")
	case path == "":
		return "", errors.New("the path after file: is missing")
	case k.sealed && ok:
		return text, nil
	case k.sealed:
		return "", errors.New("a value that begins with file: cannot wait for a second person: write it in another form")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(k.dir, path)
	}
	if text, ok := k.texts[path]; ok {
		return text, nil
	}
	// Reading a pipe or a device could block or never end; Stat does not open it.
	if info, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the file cannot be read: %w", errors.Unwrap(err))
	} else if !info.Mode().IsRegular() {
		return "", errors.New("the path after file: is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("the file cannot be read: %w", errors.Unwrap(err))
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	switch {
	case err != nil:
		return "", errors.New("the file cannot be read to its end")
	case len(raw) > maxKeyFile:
		return "", fmt.Errorf("the file is larger than %d KiB: is it the right one?", maxKeyFile>>10)
	case !utf8.Valid(raw) || strings.ContainsRune(string(raw), 0):
		return "", errors.New("the file is not a text file: give the key as PEM")
	}
	if k.total += len(raw); k.total > maxKeyFiles {
		return "", fmt.Errorf("all files of file: together are larger than %d MiB: split the file", maxKeyFiles>>20)
	}
	text := strings.TrimRight(string(raw), "\r\n")
	k.texts[path] = text
	return text, nil
}

// plain converts a config to JSON types. It resolves "file:PATH" at any depth. A number keeps
// its digits.
func (v value) plain(files *keyFiles, depth int) any {
	if !v.given() {
		return nil
	}
	if depth > maxNesting {
		v.wrong("nested too deeply")
		return nil
	}
	switch v.node.Kind {
	case yaml.MappingNode:
		fields := map[string]any{}
		o := v.object()
		for _, name := range o.names {
			if f := o.fields[name].plain(files, depth+1); f != nil {
				fields[name] = f
			}
		}
		return fields
	case yaml.SequenceNode:
		entries := []any{}
		for _, e := range v.list() {
			entries = append(entries, e.plain(files, depth+1))
		}
		return entries
	default:
		return v.scalar(files)
	}
}

func (v value) scalar(files *keyFiles) any {
	text := v.node.Value
	switch v.node.ShortTag() {
	case "!!bool":
		return strings.EqualFold(text, "true")
	case "!!int", "!!float":
		if json.Valid([]byte(text)) {
			return json.Number(text)
		}
		return text // 0123 or 1_000 is not a number in JSON
	}
	if strings.ContainsRune(text, 0) {
		v.wrong("NUL is not allowed here")
		return nil
	}
	if s, ok := files.keeps(text); ok {
		if s.Plain() == "" {
			v.wrong("the stored secret cannot be decrypted here: give a new one")
		}
		return s.Plain()
	}
	path, isFile := strings.CutPrefix(text, filePrefix)
	if !isFile {
		return text
	}
	text, err := files.read(path)
	if err != nil {
		v.wrong("%v", err)
		return nil
	}
	return text
}

// quoteNumbers turns numbers into strings where the kind requires a string: account numbers
// are often written without quotes. Other problems are left to the check.
func quoteNumbers(kind supplier.Kind, code string, config map[string]any) {
	for tried := map[string]bool{}; ; {
		raw, err := json.Marshal(config)
		if err != nil {
			return
		}
		_, err = kind.New(code, raw, nil)
		field := supplier.AsField(err)
		if field == nil || tried[field.Field] || !quote(config, strings.Split(field.Field, ".")) {
			return
		}
		tried[field.Field] = true
	}
}

// quote turns the number at path, or the numbers in the list there, into strings, and reports
// whether there were any.
func quote(fields map[string]any, path []string) (changed bool) {
	switch at := fields[path[0]].(type) {
	case map[string]any:
		return len(path) > 1 && quote(at, path[1:])
	case json.Number:
		fields[path[0]] = at.String()
		return true
	case []any:
		for i, e := range at {
			if n, ok := e.(json.Number); ok {
				at[i], changed = n.String(), true
			}
		}
	}
	return changed
}

// find returns the value at a FieldError's path, or the nearest parent that the file has.
func (o object) find(path string) value {
	at := o.value
	for name := range strings.SplitSeq(strings.NewReplacer("[", ".", "]", "").Replace(path), ".") {
		if !at.given() {
			break
		}
		switch at.node.Kind {
		case yaml.MappingNode:
			at = at.quiet().at(name)
		case yaml.SequenceNode:
			if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(at.node.Content) {
				at = at.child(at.node.Content[i], fmt.Sprintf("%s[%d]", at.path, i))
			}
		}
	}
	at.all, at.path = o.all, join(o.path, path)
	return at
}
