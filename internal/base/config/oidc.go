package config

import (
	"fmt"
	"os"
	"strings"
)

// GroupRole is a role that the members of a group have.
type GroupRole struct{ Group, Role string }

// GroupRoles are roles by group, in the order of the setting.
type GroupRoles []GroupRole

// String writes them as they are read: "payments=ops,leads=lead".
func (g GroupRoles) String() string {
	texts := make([]string, len(g))
	for i, x := range g {
		texts[i] = x.Group + "=" + x.Role
	}
	return strings.Join(texts, ",")
}

// setGroupRoles reads pairs that are separated by commas or lines. A group may contain spaces and =.
func setGroupRoles(p *GroupRoles, text string, isRole func(string) bool) (bad string) {
	for _, piece := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' }) {
		piece = strings.TrimSpace(piece)
		at := strings.LastIndex(piece, "=")
		if at < 1 || !isRole(piece[at+1:]) {
			return piece
		}
		*p = append(*p, GroupRole{piece[:at], piece[at+1:]})
	}
	return ""
}

// OIDCSecret returns the secret of the client, from its setting or its file; "" = it has none.
func (c Config) OIDCSecret() (Secret, error) {
	if c.OIDCClientSecretFile == "" {
		return c.OIDCClientSecret, nil
	}
	text, err := os.ReadFile(c.OIDCClientSecretFile)
	if err != nil {
		return Secret{}, fmt.Errorf("read BACKSTOP_OIDC_CLIENT_SECRET_FILE: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if !forms["word"].holds(secret) {
		return Secret{}, fmt.Errorf("BACKSTOP_OIDC_CLIENT_SECRET_FILE must contain %s", forms["word"].accepts)
	}
	return NewSecret(secret), nil
}

// ByPassword reports whether an operator may sign in by password.
func (c Config) ByPassword(operator string) bool {
	return c.Passwords != "off" || operator == c.BreakGlass
}
