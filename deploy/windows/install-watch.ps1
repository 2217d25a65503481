# Runs `batchscan watch` from the start of the PC, without a window, as a scheduled task. In PowerShell as administrator:
#   .\install-watch.ps1 -Folder C:\Scans -Org 'Green Valley' -Url https://batchscan-operator.example.org -TokenFile C:\Scans\token.txt
# For a folder on a share (\\server\scans), add -Credential (Get-Credential): the task then has the permissions of that user, who
# needs the right to log on as a batch job. Run it again to change a setting. remove-watch.ps1 removes it.
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
if (-not [IO.Path]::IsPathRooted($Folder) -or $Folder.Length -lt 4) { throw "-Folder must be a full path, for example C:\Scans" }
$TokenFile = (Resolve-Path -LiteralPath $TokenFile).ProviderPath
$TaskName = 'batchscan watch ' + ($Folder -replace '[\\/:*?"<>|]+', '-')
Get-ScheduledTask -TaskName $TaskName -ErrorAction SilentlyContinue | Stop-ScheduledTask

# Where only administrators can replace it. Windows moves a program that runs, for another folder, but does not replace it.
$Installed = Join-Path (New-Item -ItemType Directory -Force "$env:ProgramFiles\batchscan") 'batchscan.exe'
Remove-Item "$Installed.*.old" -ErrorAction SilentlyContinue
if (Test-Path -LiteralPath $Installed) { Move-Item -LiteralPath $Installed "$Installed.$PID.old" }
Copy-Item -LiteralPath $Program -Destination $Installed

# Without a user, the account of services with the fewest permissions. Ids, because the names are in the language of Windows.
$User = if ($Credential) { $Credential.UserName } else { '*S-1-5-19' }
function Grant($Path, $Permissions) {
    icacls $Path @Permissions | Out-Null
    if ($LASTEXITCODE) { throw "icacls cannot change the permissions of $Path" }
}
# Only the task and administrators can read the token.
Grant $TokenFile @('/inheritance:r', '/grant:r', "${User}:R", '*S-1-5-32-544:F')
if (-not $Credential) { Grant $Folder @('/grant', "${User}:(OI)(CI)M") }

$Task = @{
    TaskName = $TaskName
    Action   = New-ScheduledTaskAction -Execute $Installed `
        -Argument "watch `"$Folder`" --org `"$Org`" --url $Url --token-file `"$TokenFile`""
    # Each minute, if it does not run: a share may be missing at first.
    Trigger  = @(
        (New-ScheduledTaskTrigger -AtStartup),
        (New-ScheduledTaskTrigger -Once -At (Get-Date) -RepetitionInterval (New-TimeSpan -Minutes 1))
    )
    Settings = New-ScheduledTaskSettingsSet -ExecutionTimeLimit 0 -MultipleInstances IgnoreNew `
        -AllowStartIfOnBatteries -DontStopIfGoingOnBatteries
}
if ($Credential) {
    Register-ScheduledTask @Task -User $User -Password $Credential.GetNetworkCredential().Password -Force | Out-Null
}
else {
    $Principal = New-ScheduledTaskPrincipal -UserId 'S-1-5-19' -LogonType ServiceAccount
    Register-ScheduledTask @Task -Principal $Principal -Force | Out-Null
}
Start-ScheduledTask -TaskName $TaskName
Start-Sleep -Seconds 5
if ((Get-ScheduledTask -TaskName $TaskName).State -ne 'Running') {
    throw "watch ended: try the same command in a console. & '$Installed' watch '$Folder' --org '$Org' --url $Url --token-file '$TokenFile'"
}
