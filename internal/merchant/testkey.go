package merchant

import "strings"

// TestKeyPrefix begins the API keys of test mode.
const TestKeyPrefix = "sk_test_"

// IsTestKey reports whether an API key belongs to test mode.
func IsTestKey(key string) bool { return strings.HasPrefix(key, TestKeyPrefix) }
