package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestVendoredFilesAreUnchanged compares what others wrote with the list.
func TestVendoredFilesAreUnchanged(t *testing.T) {
	list, err := os.ReadFile("vendor/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for line := range strings.Lines(string(list)) {
		if sum, name, ok := strings.Cut(strings.TrimSpace(line), "  "); ok {
			listed[name] = sum
		}
	}
	for _, folder := range []string{"vendor", "fonts"} {
		entries, err := files.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := folder + "/" + e.Name()
			body, err := files.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(body)
			if got := hex.EncodeToString(sum[:]); got != listed[name] {
				t.Errorf("%s is %s, listed as %q", name, got, listed[name])
			}
			delete(listed, name)
		}
	}
	for name := range listed {
		t.Errorf("%s is listed, but not there", name)
	}
}

// A source map is megabytes for nobody, and a link to one is a request that fails.
func TestNoSourceMapIsEmbedded(t *testing.T) {
	seen := 0
	err := fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		seen++
		body, err := files.ReadFile(name)
		if strings.HasSuffix(name, ".map") || bytes.Contains(body, []byte("sourceMappingURL=")) {
			t.Errorf("%s is a source map, or leads to one", name)
		}
		return err
	})
	if err != nil || seen < 10 {
		t.Errorf("%d files seen: %v", seen, err)
	}
}

func TestFilesAreFoundByTheirExactPathOnly(t *testing.T) {
	s := Load()
	for name, url := range s.urls {
		f, ok := s.Find(url)
		if !ok || len(f.Body) == 0 || f.Type == "" {
			t.Errorf("%s is not served", name)
		}
		if len(f.Gzip) == 0 {
			continue
		}
		r, err := gzip.NewReader(bytes.NewReader(f.Gzip))
		if err != nil {
			t.Fatal(err)
		}
		if whole, err := io.ReadAll(r); err != nil || !bytes.Equal(whole, f.Body) {
			t.Errorf("%s is packed to something else: %v", name, err)
		}
	}
	css := s.URL("console.css")
	for _, path := range []string{
		"", "/static/", "/static/console.css", strings.ToUpper(css), css + "/", "/static/vendor/../" + strings.TrimPrefix(css, Prefix),
		"/static/static.go", "/static/vendor/SHA256SUMS",
	} {
		if _, ok := s.Find(path); ok {
			t.Errorf("%q is served", path)
		}
	}
}

// A sheet that named a file without its hash would find nothing.
func TestTheSheetNamesFilesThatAreServed(t *testing.T) {
	s := Load()
	sheet, _ := s.Find(s.URL("console.css"))
	links := regexp.MustCompile(`url\(([^)]*)\)`).FindAllSubmatch(sheet.Body, -1)
	if len(links) != 2 {
		t.Errorf("%d files are named by the sheet, want the two fonts", len(links))
	}
	for _, m := range links {
		if _, ok := s.Find(string(m[1])); !ok {
			t.Errorf("the sheet names %s, which is not served", m[1])
		}
	}
}
