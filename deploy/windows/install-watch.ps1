# Runs `batchscan watch` from the start of the PC, without a window, as a scheduled task. In PowerShell as administrator:
#   .\install-watch.ps1 -Folder C:\Scans -Org 'Green Valley' -Url https://batchscan-operator.example.org -TokenFile C:\Scans\token.txt
# For a folder on a share (\\server\scans), add -Credential (Get-Credential): the task then has the permissions of that user.
# watch-PC.status in the folder shows whether it runs; remove-watch.ps1 removes it.
param(
    [Parameter(Mandatory)] [string] $Folder,
    [Parameter(Mandatory)] [string] $Org,
    [Parameter(Mandatory)] [string] $Url,
    [Parameter(Mandatory)] [string] $TokenFile,
    [string] $Program = "$PSScriptRoot\batchscan.exe",
    [pscredential] $Credential
)
$ErrorActionPreference = 'Stop'
# A backslash before a quotation mark would escape it.
$Folder = $Folder.TrimEnd('\')
$TokenFile = (Resolve-Path -LiteralPath $TokenFile).ProviderPath
$User = if ($Credential) { $Credential.UserName } else { [Security.Principal.WindowsIdentity]::GetCurrent().Name }
# Only this user can read the token.
icacls $TokenFile /inheritance:r /grant:r "${User}:R" | Out-Null

$Task = @{
    TaskName = 'batchscan watch'
    Action   = New-ScheduledTaskAction -Execute (Resolve-Path -LiteralPath $Program).ProviderPath `
        -Argument "watch `"$Folder`" --org `"$Org`" --url $Url --token-file `"$TokenFile`""
    Trigger  = New-ScheduledTaskTrigger -AtStartup
    Settings = New-ScheduledTaskSettingsSet -ExecutionTimeLimit 0 -RestartCount 999 -RestartInterval (New-TimeSpan -Minutes 1) `
        -AllowStartIfOnBatteries -DontStopIfGoingOnBatteries
}
if ($Credential) {
    Register-ScheduledTask @Task -User $User -Password $Credential.GetNetworkCredential().Password -Force | Out-Null
}
else {
    # Runs also while this user is not signed in, and stores no password.
    $Principal = New-ScheduledTaskPrincipal -UserId $User -LogonType S4U
    Register-ScheduledTask @Task -Principal $Principal -Force | Out-Null
}
Start-ScheduledTask -TaskName $Task.TaskName
