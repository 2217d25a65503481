// The random numbers of Rust's standard library, which wine 8 lacks.
#include <windows.h>
#include <ntsecapi.h>
__declspec(dllexport) BOOL WINAPI ProcessPrng(BYTE *data, SIZE_T length) { return RtlGenRandom(data, (ULONG)length); }
