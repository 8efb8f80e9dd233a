package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// defaultFile is read when it lies in the working directory.
const defaultFile = "backstop.yaml"

// maxFile bounds the file: every setting at its longest is far below it, and a
// wrong path (a device, a database) must not fill the memory.
const maxFile = 1 << 20

// readFile returns what the file sets by name, and a problem for each entry that
// cannot be taken.
func readFile(path string) (map[string]given, []string, error) {
	text, err := fileText(path)
	if err != nil || text == "" {
		return nil, nil, err
	}
	root, err := parseFile(text)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration file %s: %w", either(path, defaultFile), err)
	}
	if root == nil {
		return nil, nil, nil
	}
	known := map[string]given{}
	var problems []string
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		where := fmt.Sprintf("%s line %d", either(path, defaultFile), key.Line)
		name := strings.ToUpper(key.Value)
		if !isKnown(name) || strings.ToLower(name) != key.Value {
			problems = append(problems, fmt.Sprintf("%s: %.80s is not known: did you mean %s?", where, key.Value, strings.ToLower(nearest(name))))
			continue
		}
		if _, twice := known[name]; twice {
			problems = append(problems, fmt.Sprintf("%s: %s is set twice: keep one of them", where, key.Value))
			continue
		}
		text, ok := scalars(value)
		if !ok {
			problems = append(problems, fmt.Sprintf("%s: %s takes a text, a number or a list of them", where, key.Value))
			continue
		}
		if text != "" {
			known[name] = given{text: text, label: where + ": " + key.Value, origin: FromFile}
		}
	}
	return known, problems, nil
}

// fileText returns "" where no file was asked for and none lies there.
func fileText(path string) (string, error) {
	f, err := os.Open(either(path, defaultFile))
	if errors.Is(err, fs.ErrNotExist) {
		if path == "" {
			return "", nil
		}
		return "", fmt.Errorf("configuration file %s does not exist: mend the path behind --config", path)
	}
	if err != nil {
		return "", fmt.Errorf("open configuration file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", fmt.Errorf("read configuration file: %w", err)
	}
	if len(text) > maxFile {
		return "", fmt.Errorf("configuration file %s is larger than %s: is it the right file?", f.Name(), Bytes(maxFile))
	}
	return string(text), nil
}

var yamlLine = regexp.MustCompile(`line \d+`)

// parseFile returns the one mapping of the file, or nil for a file without
// content. The YAML library's own words are left out of errors: they may quote
// the text, which may be a secret.
func parseFile(text string) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var document, more yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("not valid YAML at %s: mend it or quote the value", either(yamlLine.FindString(err.Error()), "the start"))
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("holds more than one document: remove all from the second --- on")
	}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, errors.New("must hold lines like `listen: 127.0.0.1:8080`")
	}
	return root, nil
}

// scalars returns a value as it would stand in the environment; the entries of a
// list come one a line.
func scalars(n *yaml.Node) (string, bool) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return "", true
	case n.Kind == yaml.ScalarNode:
		return n.Value, true
	case n.Kind != yaml.SequenceNode:
		return "", false
	}
	var lines []string
	for _, entry := range n.Content {
		if entry.Kind != yaml.ScalarNode {
			return "", false
		}
		lines = append(lines, entry.Value)
	}
	return strings.Join(lines, "\n"), true
}
