package openai

const (
	// bytesPerToken is that of English text and code, roughly; other scripts
	// and tokenizers are up to three times away.
	bytesPerToken = 4

	// envelope is how much of a small request is field names and braces.
	envelope = 100

	// A body is probed for encoded data by blobWindow bytes in every blobStride.
	// Two probes in a row that hit are a blob.
	blobStride = 2048
	blobWindow = 32

	// blobTokens is what an image or a piece of sound is taken for. Models take
	// 85 to 1,600 tokens for one, whatever its size in bytes.
	blobTokens = 512
)

// EstimatePromptTokens guesses how many tokens the prompt in a request body
// has, from its size alone: a basis for placing a request until usage tells,
// good to about ±30 % for English, and a factor of 2 to 3 for other scripts.
// Strings of base64 (images, sound, files) of 4 KiB and more count as a fixed
// number of tokens each. It is at least 1.
//
// It looks at one byte in 64, so it can be deceived by a client that means to;
// usage then tells the truth.
func EstimatePromptTokens(body []byte) int {
	text, blobs, run := len(body)-envelope, 0, 0
	for at := blobStride; ; at += blobStride {
		inside := at+blobWindow <= len(body)
		if inside && isBase64(body[at:at+blobWindow]) {
			run++
			continue
		}
		if run >= 2 { // strides hit are the blob's length, give or take one
			text -= run * blobStride
			blobs++
		}
		run = 0
		if !inside {
			return max(1, text/bytesPerToken) + blobs*blobTokens
		}
	}
}

// isBase64 reports whether b may be from the middle of base64 in a JSON
// string: of either alphabet, also with escaped slashes and line ends.
func isBase64(b []byte) bool {
	for _, c := range b {
		if !base64Bytes[c] {
			return false
		}
	}
	return true
}

var base64Bytes = func() (set [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=\\") {
		set[c] = true
	}
	return set
}()
