// Package sdk puts the official and the common SDKs, unchanged but for their
// base URL, in front of the built program and a simulated engine: openai-go
// here, openai and anthropic for Python in python/, and openai, Vercel's AI
// SDK, LangChain and anthropic for Node in node/. It is a module of its own so
// that their weight stays out of the program's.
//
//	make sdk
package sdk
