package mask

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Patterns of personal data in texts without meaningful field names. They err towards hiding;
// numbers that operators need are kept by field name (plainNumber) or because they belong to
// the order (Masker.Keep).

var (
	mailText = regexp.MustCompile(`[\pL\pN._%+\-]+@[\pL\pN\-]+(?:\.[\pL\pN\-]+)+`)
	// digitRun is a number as people write it, possibly with spaces or dashes; a plus is an
	// escaped space.
	digitRun = regexp.MustCompile(`\+?[0-9](?:[ \-+]?[0-9])*[Xx]?`)
	// namedValue is a name=value pair in a URL, a form, or a line of text.
	namedValue = regexp.MustCompile(`([\pL_][\pL\pN_.\-\[\]]*) ?= ?("[^"]*"|'[^']*'|[^&\s;,"'<>]+)`)
	// quotedPair is a pair of JSON in a line of text, element one of XML.
	quotedPair = regexp.MustCompile(`"([\pL\pN_.\-]+)\\?" ?: ?(\\?"[^"]*"|[^\s,;}\]]+)`)
	element    = regexp.MustCompile(`<([\pL_][\pL\pN_.\-]*)[^<>]*>([^<]+)</`)
	// colonPair is "name: value" in a line of text.
	colonPair = regexp.MustCompile(`([\pL_][\pL\pN_.\-]*)["']? ?: ?((?:(?i:bearer|basic|digest|token) )?["']?[^\s;,"'<>]+)`)
	// credentialLine is a header whose whole line gives access.
	credentialLine = regexp.MustCompile(`(?i)(\b(?:proxy-)?authorization: ?|\b(?:set-)?cookie: ?)[^\r\n]+`)
	// login and fragment are what gives access in a web address. A login is written as endpoints
	// show it, which can still be parsed.
	login    = regexp.MustCompile(`([a-z]://)[^\s/?#]*@`)
	fragment = regexp.MustCompile(`(://[^\s#"<>]*#)[^\s"<>]+`)
	// secretText are the forms of well-known keys, and of our own; each has one of secretMarks.
	secretText = regexp.MustCompile(`\beyJ[\w\-]{8,}\.[\w\-.]+|\b(?:sk|rk)_(?:live|test)_\w+|\bwhsec_[\w+/=\-]+|` +
		`\bbs[ot]_\w+|\w+_secret_\w+|(?i:\bbearer )[\w+/=.\-]{8,}|-----BEGIN [^-]*PRIVATE KEY-----[^-]*(?:-----END [^-]*-----)?`)
	secretMarks = []string{"eyJ", "k_live_", "k_test_", "whsec_", "bso_", "bst_", "_secret_", "earer ", "EARER ", "PRIVATE KEY"}
	separators  = regexp.MustCompile(`[ \-+]`)
)

// maskNumbers hides phone, identity and card numbers in a text.
func (m Masker) maskNumbers(text string) string {
	var b strings.Builder
	end := 0
	for _, at := range digitRun.FindAllStringIndex(text, -1) {
		from, to := ownGroups(text, at[0], at[1])
		if from >= to || slices.Contains(m.Keep, text[from:to]) {
			continue
		}
		if run := text[from:to]; m.maskRun(run) != run {
			b.WriteString(text[end:from] + m.maskRun(run))
			end = to
		}
	}
	return b.String() + text[end:]
}

// ownGroups trims a run by the group at either end whose neighbouring characters make it
// something else: part of a payment's id, a decimal.
func ownGroups(text string, from, to int) (int, int) {
	digit := func(i int) bool { return i >= 0 && i < len(text) && text[i] >= '0' && text[i] <= '9' }
	word := func(i int) bool {
		return digit(i) || i >= 0 && i < len(text) && (text[i] == '_' || text[i] >= 'a' && text[i] <= 'z' || text[i] >= 'A' &&
			text[i] <= 'Z')
	}
	groups := separators.FindAllStringIndex(text[from:to], -1)
	own, end := from, to
	if word(from-1) || digit(from-2) && text[from-1] == '.' {
		if len(groups) == 0 {
			return to, to
		}
		own = from + groups[0][1]
	}
	if word(to) || digit(to+1) && to < len(text) && text[to] == '.' {
		if len(groups) == 0 {
			return to, to
		}
		end = from + groups[len(groups)-1][0]
	}
	return own, end
}

// maxGroups is the maximum number of digit groups in one number.
const maxGroups = 5

// maskRun masks the numbers in a run of digit groups.
func (m Masker) maskRun(run string) string {
	number, abroad := strings.CutPrefix(run, "+")
	if n := len(separators.ReplaceAllString(number, "")); abroad && n >= 8 && n <= 15 {
		return Dots
	}
	if abroad {
		return "+" + m.maskRun(number)
	}
	groups := separators.FindAllStringIndex(run, -1)
	starts, ends := []int{0}, []int{}
	for _, g := range groups {
		starts, ends = append(starts, g[1]), append(ends, g[0])
	}
	ends = append(ends, len(run))
	var b strings.Builder
	done := 0
	for i := 0; i < len(starts); i++ {
		for j := min(i+maxGroups, len(starts)) - 1; j >= i; j-- {
			part := run[starts[i]:ends[j]]
			if !slices.Contains(m.Keep, part) && isPersonalNumber(part) {
				b.WriteString(run[done:starts[i]] + Dots)
				done, i = ends[j], j
				break
			}
		}
	}
	return b.String() + run[done:]
}

// grouped are the digit groupings in which numbers are written; all others are written without
// separators.
var grouped = [][]int{
	{3, 4, 4},
	{2, 3, 4, 4},
	{2, 11},
	{4, 4, 4, 1},
	{4, 4, 4, 2},
	{4, 4, 4, 3},
	{4, 4, 4, 4},
	{4, 4, 4, 4, 1},
	{4, 4, 4, 4, 2},
	{4, 4, 4, 4, 3},
	{4, 6, 5},
	{6, 8, 4},
}

func isPersonalNumber(part string) bool {
	pieces := strings.FieldsFunc(part, func(r rune) bool { return r == ' ' || r == '-' || r == '+' })
	if len(pieces) > 1 {
		lengths := make([]int, len(pieces))
		for i, p := range pieces {
			lengths[i] = len(p)
		}
		if !slices.ContainsFunc(grouped, func(g []int) bool { return slices.Equal(g, lengths) }) {
			return false
		}
	}
	n := strings.Join(pieces, "")
	digits := strings.TrimRight(n, "Xx")
	return isMobile(digits) || isIdentity(n) || isCard(digits)
}

// isMobile reports whether a number is a mainland China mobile number, with or without country
// code.
func isMobile(n string) bool {
	for _, country := range []string{"", "86", "0086"} {
		if rest, ok := strings.CutPrefix(n, country); ok && len(rest) == 11 && rest[0] == '1' && rest[1] >= '3' {
			return true
		}
	}
	return false
}

// provinces are the first two digits of identity numbers.
const provinces = "11 12 13 14 15 21 22 23 31 32 33 34 35 36 37 41 42 43 44 45 46 50 51 52 53 54 61 62 63 64 65 71 81 82 83 91"

// isIdentity reports whether a number is a Chinese identity card number: province, birth date
// and check digit (GB 11643).
func isIdentity(n string) bool {
	if len(n) != 18 || !slices.Contains(strings.Fields(provinces), n[:2]) {
		return false
	}
	if born, err := time.Parse("20060102", n[6:14]); err != nil || born.Year() < 1900 || born.Year() > 2099 {
		return false
	}
	sum, weight := 0, 1
	for i := 17; i >= 0; i-- {
		digit := int(n[i] - '0')
		if n[i] == 'X' || n[i] == 'x' {
			if i != 17 {
				return false
			}
			digit = 10
		}
		sum, weight = sum+digit*weight, weight*2%11
	}
	return sum%11 == 1
}

// isCard reports whether a number may be a bank card number: in an issued range and with a
// valid Luhn check digit.
func isCard(n string) bool {
	if len(n) < 13 || len(n) > 19 || strings.Trim(n, "0123456789") != "" {
		return false
	}
	head, _ := strconv.Atoi(n[:4])
	if n[0] < '3' && (head < 2221 || head > 2720) || n[0] > '6' && n[:2] != "81" && n[:2] != "94" {
		return false
	}
	sum := 0
	for i := range n {
		digit := int(n[len(n)-1-i] - '0')
		if i%2 == 1 {
			if digit *= 2; digit > 9 {
				digit -= 9
			}
		}
		sum += digit
	}
	return sum%10 == 0
}

// plainNumber matches the names of fields that hold numbers that operators need, times, or
// amounts; never phone or card numbers.
var plainNumber = regexp.MustCompile(`(?i)^(id|no|sn|order|trade|nonce|nonce_?str|sign|signature)$|` +
	`(order|trade|transaction|refund|payout|batch|flow|serial|mch|merchant|app|seller|partner|notify|event|request|req|prepay|charge|intent|out|bill|notification|delivery)[a-z_\-]*(no|id|sn|num|number|serial)$|` +
	`(amount|total|fee|price|balance|time|date|stamp|_at|created|expires|serial)$`)
