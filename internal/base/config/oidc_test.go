package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGroupsHaveRoles(t *testing.T) {
	t.Parallel()
	client := []string{"BACKSTOP_OIDC_ISSUER=https://id.example.com/", "BACKSTOP_OIDC_CLIENT_ID=backstop"}
	c, err := load(t, "", append(client, "BACKSTOP_OIDC_ROLES=/payments leads=lead, cn=ops=ops")...)
	if err != nil || c.OIDCRoles.String() != "/payments leads=lead,cn=ops=ops" {
		t.Errorf("%q: %v", c.OIDCRoles, err)
	}
	if c.OIDCIssuer != "https://id.example.com/" {
		t.Errorf("the issuer is %q: it must be compared as it is written", c.OIDCIssuer)
	}
	for _, text := range []string{"leads", "=lead", "leads=Boss", "leads=lead,x"} {
		if _, err := load(t, "", append(client, "BACKSTOP_OIDC_ROLES="+text)...); err == nil ||
			!strings.Contains(err.Error(), "use group=role separated by commas, each role one of viewer, support, ops") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestSigningInIsPossible(t *testing.T) {
	t.Parallel()
	provider := []string{"BACKSTOP_OIDC_ISSUER=https://id.example.com", "BACKSTOP_OIDC_CLIENT_ID=backstop", "BACKSTOP_OIDC_ROLES=a=admin"}
	for _, c := range []struct {
		env  []string
		cure string
	}{
		{provider, ""},
		{provider[:2], "set both"},
		{provider[1:], "do nothing without BACKSTOP_OIDC_ISSUER"},
		{append(provider[:3:3], "BACKSTOP_PASSWORDS=off"), "BACKSTOP_BREAK_GLASS"},
		{append(provider[:3:3], "BACKSTOP_PASSWORDS=off", "BACKSTOP_BREAK_GLASS=admin"), ""},
		{[]string{"BACKSTOP_PASSWORDS=off", "BACKSTOP_BREAK_GLASS=admin"}, "BACKSTOP_OIDC_ISSUER"},
		{append(provider[:3:3], "BACKSTOP_OIDC_CLIENT_SECRET=a", "BACKSTOP_OIDC_CLIENT_SECRET_FILE=b"), "keep one of them"},
	} {
		if _, err := load(t, "", c.env...); (err == nil) != (c.cure == "") || err != nil && !strings.Contains(err.Error(), c.cure) {
			t.Errorf("%q: %v, want %q", c.env, err, c.cure)
		}
	}
}

func TestTheSecretOfTheClientIsReadFromItsFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret")
	c, err := load(t, "", "BACKSTOP_OIDC_CLIENT_SECRET_FILE="+path)
	if err != nil {
		t.Fatal(err)
	}
	for text, fine := range map[string]bool{"s3cret\n": true, "": false, "two words": false} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if secret, err := c.OIDCSecret(); (err == nil) != fine || fine && secret.Reveal() != "s3cret" || err != nil && text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %q, %v", text, secret.Reveal(), err)
		}
	}
}
