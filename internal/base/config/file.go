package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// defaultFile is read if it is in the working directory.
const defaultFile = "backstop.yaml"

// maxFile bounds the file in bytes: far above all settings, so that a wrong path (a
// device, a database) does not fill the memory.
const maxFile = 1 << 20

// readFile returns the file's values by name, and a problem for each invalid entry.
func readFile(path string) (map[string]given, []string, error) {
	text, err := fileText(path)
	if err != nil || text == "" {
		return nil, nil, err
	}
	root, err := parseFile(text)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration file %s: %w", cmp.Or(path, defaultFile), err)
	}
	if root == nil {
		return nil, nil, nil
	}
	known := map[string]given{}
	var problems []string
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		where := fmt.Sprintf("%s line %d", cmp.Or(path, defaultFile), key.Line)
		name := strings.ToUpper(key.Value)
		if !isKnown(name) || strings.ToLower(name) != key.Value {
			problems = append(problems, fmt.Sprintf("%s: %.80s is not known: did you mean %s?", where, key.Value,
				strings.ToLower(nearest(name))))
			continue
		}
		if _, twice := known[name]; twice {
			problems = append(problems, fmt.Sprintf("%s: %s is set twice: keep one of them", where, key.Value))
			continue
		}
		text, ok := scalars(value)
		if !ok {
			problems = append(problems, fmt.Sprintf("%s: %s takes a string, a number or a list of them", where, key.Value))
			continue
		}
		if text != "" {
			known[name] = given{text: text, label: where + ": " + key.Value, origin: FromFile}
		}
	}
	return known, problems, nil
}

// fileText returns "" if no path is given and there is no default file.
func fileText(path string) (string, error) {
	f, err := os.Open(cmp.Or(path, defaultFile))
	if errors.Is(err, fs.ErrNotExist) {
		if path == "" {
			return "", nil
		}
		return "", fmt.Errorf("configuration file %s does not exist: check the path of --config", path)
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

// parseFile returns the one mapping of the file, or nil for an empty file. Errors do not
// contain the YAML library's own errors: they may quote the text, which may be a secret.
func parseFile(text string) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var document, more yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("not valid YAML at %s: fix it or quote the value", cmp.Or(yamlLine.FindString(err.Error()), "the start"))
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("contains more than one document: remove everything from the second --- on")
	}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, errors.New("must contain lines like `listen: 127.0.0.1:8080`")
	}
	return root, nil
}

// scalars returns a value in the form of an environment variable, list entries one per
// line.
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
