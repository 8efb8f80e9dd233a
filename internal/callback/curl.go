package callback

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"backstop/internal/base/textlimit"
)

// Options of curl that a callback may have; the others are refused, because leaving one out could
// mean another request.
var (
	curlValues = map[string]string{
		"-X": "method", "--request": "method", "-H": "header", "--header": "header", "--url": "url", "-A": "agent", "--user-agent": "agent",
		"-d": "data", "--data": "data", "--data-ascii": "data", "--data-raw": "raw", "--data-binary": "binary",
		"--data-urlencode": "encode", "--json": "json",
		"-b": "cookie", "--cookie": "cookie", "-e": "referer", "--referer": "referer", "-u": "user", "--user": "user",
		"-m": "", "--max-time": "", "--connect-timeout": "", "-o": "", "--output": "", "-w": "", "--write-out": "", "--retry": "",
		"--max-redirs": "", "--resolve": "", "--cacert": "",
	}
	curlFlags = []string{
		"-4", "-6", "-N", "--no-buffer",
		"-s", "--silent", "-S", "--show-error", "-sS", "-v", "--verbose", "-i", "--include", "-k", "--insecure", "-f", "--fail", "-L",
		"--location",
		"--compressed", "--http1.1", "--http2", "-g", "--globoff",
	}
)

// curl reads the arguments of a curl line.
func (p *paste) curl(line string) error {
	if strings.Contains(line, `^"`) {
		line = withoutCarets(line)
	}
	words, ok := shellWords(line)
	if !ok {
		return pasteQuote.Say()
	}
	var data []string
	posts, inURL := false, false
	for i := 0; i < len(words); i++ {
		option, value, joined := splitOption(words[i])
		what, takes := curlValues[option]
		switch {
		case !strings.HasPrefix(words[i], "-"):
			what, value = "url", words[i]
		case words[i] == "-G" || words[i] == "--get":
			inURL = true
			continue
		case isCurlFlags(words[i]):
			continue
		case !takes:
			return pasteOption.Say(textlimit.Clip(words[i], maxQuoted))
		case !joined && i+1 == len(words):
			return pasteValue.Say(option)
		case !joined:
			i++
			value = words[i]
		}
		switch what {
		case "method":
			p.method = value
		case "agent":
			p.header.Set("User-Agent", value)
		case "referer":
			p.header.Set("Referer", value)
		case "cookie":
			if !strings.Contains(value, "=") { // a file
				return pasteFile.Say(textlimit.Clip(value, maxQuoted))
			}
			p.header.Set("Cookie", value)
		case "user":
			p.header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(value)))
		case "header":
			if !p.addHeader(value) {
				return pasteHeader.Say(strconv.Quote(textlimit.Clip(value, maxQuoted)))
			}
		case "url":
			if p.target != "" {
				return pasteURLs.Say()
			}
			p.target = value
		case "data", "binary", "json", "raw":
			if strings.HasPrefix(value, "@") && what != "raw" {
				return pasteFile.Say(textlimit.Clip(value, maxQuoted))
			}
			if posts = true; what == "json" {
				p.setDefault("Content-Type", "application/json")
			}
			data = append(data, value)
		case "encode":
			name, content, named := strings.Cut(value, "=")
			if file, _, isFile := strings.Cut(name, "@"); isFile && !strings.Contains(file, "=") {
				return pasteFile.Say(textlimit.Clip(value, maxQuoted))
			}
			if posts = true; !named {
				name, content = "", value
			}
			if content = strings.ReplaceAll(url.QueryEscape(content), "+", "%20"); name != "" {
				content = name + "=" + content
			}
			data = append(data, content)
		}
	}
	if p.target == "" {
		return pasteNoURL.Say()
	}
	if inURL {
		if all := strings.Join(data, "&"); all != "" {
			before, mark := p.target, "?"
			if strings.Contains(before, "?") {
				mark = "&"
			}
			p.target = before + mark + all
		}
		data, posts = nil, false
	}
	if p.body = strings.Join(data, "&"); posts {
		p.setDefault("Content-Type", "application/x-www-form-urlencoded")
	}
	if p.method == "" {
		p.method = http.MethodGet
		if posts {
			p.method = http.MethodPost
		}
	}
	return nil
}

func (p *paste) setDefault(name, value string) {
	if p.header.Get(name) == "" {
		p.header.Set(name, value)
	}
}

// isCurlFlags reports whether a word is a flag, or several such as -sSL.
func isCurlFlags(word string) bool {
	if slices.Contains(curlFlags, word) {
		return true
	}
	if len(word) < 3 || word[0] != '-' || word[1] == '-' {
		return false
	}
	for _, letter := range word[1:] {
		if !slices.Contains(curlFlags, "-"+string(letter)) {
			return false
		}
	}
	return true
}

// withoutCarets makes a line for the Windows command prompt, as browsers copy it, one for a shell:
// a caret there escapes what follows, also the end of a line.
func withoutCarets(line string) string {
	var out strings.Builder
	for i := 0; i < len(line); i++ {
		if line[i] != '^' || i+1 == len(line) {
			out.WriteByte(line[i])
		} else if i++; line[i] == '\n' {
			out.WriteByte(' ')
		} else {
			out.WriteByte(line[i])
		}
	}
	return out.String()
}

// splitOption splits --option=value, and -Xvalue.
func splitOption(word string) (option, value string, joined bool) {
	if strings.HasPrefix(word, "--") {
		return strings.Cut(word, "=")
	}
	if len(word) > 2 && word[0] == '-' && curlValues[word[:2]] != "" {
		return word[:2], word[2:], true
	}
	return word, "", false
}

// shellWords splits a line as a shell does, without expanding anything; false = a quotation mark is
// not closed.
func shellWords(line string) (words []string, ok bool) {
	var word strings.Builder
	inWord := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line):
			if i++; line[i] != '\n' { // at the end of a line it continues the line
				word.WriteByte(line[i])
				inWord = true
			}
		case c == '\'' || c == '"' || c == '$' && i+1 < len(line) && line[i+1] == '\'':
			ansi := c == '$'
			if ansi {
				i, c = i+1, '\''
			}
			end := quoted(&word, line[i+1:], c, ansi)
			if end < 0 {
				return nil, false
			}
			i, inWord = i+1+end, true
		case c == ' ' || c == '\t' || c == '\n':
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, true
}

// quoted adds a quoted text and returns where its end is; below 0 = it has none. A backslash
// escapes in "…" and $'…' only.
func quoted(to *strings.Builder, rest string, mark byte, ansi bool) (end int) {
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == mark:
			return i
		case c == '\\' && i+1 < len(rest) && ansi:
			i++
			switch rest[i] {
			case 'n':
				to.WriteByte('\n')
			case 'r':
				to.WriteByte('\r')
			case 't':
				to.WriteByte('\t')
			case 'u', 'x': // as browsers copy a request
				code, digits := escaped(rest[i:])
				if digits == 0 {
					return -1
				}
				if rest[i] == 'x' {
					to.WriteByte(byte(code))
				} else if low, more := escaped(strings.TrimPrefix(rest[i+digits+1:], `\`)); more == 4 && utf16.IsSurrogate(rune(code)) &&
					strings.HasPrefix(rest[i+digits+1:], `\u`) {
					to.WriteRune(utf16.DecodeRune(rune(code), rune(low)))
					i += 2 + more
				} else {
					to.WriteRune(rune(code))
				}
				i += digits
			default:
				to.WriteByte(rest[i])
			}
		case c == '\\' && i+1 < len(rest) && mark == '"' && strings.IndexByte("\"\\$`\n", rest[i+1]) >= 0:
			if i++; rest[i] != '\n' {
				to.WriteByte(rest[i])
			}
		default:
			to.WriteByte(c)
		}
	}
	return -1
}

// escaped reads \u4e2d or \xe4 after its backslash; 0 digits = it is neither.
func escaped(text string) (code uint64, digits int) {
	if text == "" {
		return 0, 0
	}
	n := map[byte]int{'u': 4, 'x': 2}[text[0]]
	code, err := strconv.ParseUint(text[1:min(1+n, len(text))], 16, 32)
	if n == 0 || err != nil || len(text) < 1+n {
		return 0, 0
	}
	return code, n
}
