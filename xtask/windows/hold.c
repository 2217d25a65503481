// Holds files open, as a program does that is still writing them, until it is killed.
#include <stdio.h>
#include <windows.h>

int main(int count, char **paths) {
    for (int i = 1; i < count; i++) {
        HANDLE file = CreateFileA(paths[i], GENERIC_WRITE, FILE_SHARE_READ, NULL, OPEN_EXISTING, 0, NULL);
        if (file == INVALID_HANDLE_VALUE) return 1;
    }
    puts("holding");
    fflush(stdout);
    Sleep(INFINITE);
}
