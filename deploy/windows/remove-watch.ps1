# Ends and removes the task of install-watch.ps1. Files that wait stay in the folder. In PowerShell as administrator.
$ErrorActionPreference = 'Stop'
Stop-ScheduledTask -TaskName 'batchscan watch'
Unregister-ScheduledTask -TaskName 'batchscan watch' -Confirm:$false
