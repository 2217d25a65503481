# Ends and removes the task of install-watch.ps1. Files that wait stay in the folder. In PowerShell as administrator:
#   .\remove-watch.ps1 -Folder C:\Scans
param([Parameter(Mandatory)] [string] $Folder)
$ErrorActionPreference = 'Stop'
$TaskName = 'batchscan watch ' + ($Folder.TrimEnd('\') -replace '[\\/:*?"<>|]+', '-')
Stop-ScheduledTask -TaskName $TaskName
Unregister-ScheduledTask -TaskName $TaskName -Confirm:$false
