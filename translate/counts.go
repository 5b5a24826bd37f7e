package translate

import (
	"strconv"

	"github.com/pacer-dev/pacer/internal/openai"
)

// eachCount calls take for each number of tokens in the JSON object b, which is
// valid: those of its fields, and with parent those of the objects that are fields of
// it. A number is as count reads it. Names have no escapes where anyone looks for
// them. take must not keep them.
func eachCount(b []byte, take func(parent, name []byte, n int)) {
	var names [3][]byte
	depth, key := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '{':
			depth, key = depth+1, true
		case c == '[':
			if depth++; depth > 1 { // no count stands in a list
				i, depth = i+max(openai.ValueLen(b[i:]), 1)-1, depth-1
			}
		case c == '}':
			depth--
		case c == ',':
			key = true
		case c == ':':
			key = false
		case c == '"':
			n := openai.ValueLen(b[i:])
			if n == 0 {
				return
			}
			if key && depth < len(names) {
				names[depth] = b[i+1 : i+n-1]
			}
			i += n - 1
		case '0' <= c && c <= '9' || c == '-':
			n, value := numberOf(b[i:])
			i += n - 1
			if depth == 1 {
				take(nil, names[1], value)
			} else if depth == 2 {
				take(names[1], names[2], value)
			}
		}
	}
}

// numberOf is the number that b begins with as a count, and how long it is written.
func numberOf(b []byte) (size, n int) {
	for size < len(b) && '0' <= b[size] && b[size] <= '9' && size < 9 {
		n = n*10 + int(b[size]-'0')
		size++
	}
	whole := size
	for size < len(b) && isNumeric(b[size]) {
		size++
	}
	if size == whole {
		return size, n
	}
	f, _ := strconv.ParseFloat(string(b[:size]), 64)
	if !(f > 0) {
		return size, 0
	}
	return size, int(min(f, 1<<31-1))
}

// isNumeric reports whether c stands in numbers.
func isNumeric(c byte) bool {
	return '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c|0x20 == 'e'
}
