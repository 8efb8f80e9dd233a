package exception

// Limits on what is kept of the callbacks behind an open exception when their retention ends.
const (
	KeptCallbacks = 5        // per exception, the oldest
	KeptBytes     = 16 << 10 // of each body; characters of each query and headers
)
