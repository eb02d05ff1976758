; Description of the installer for Windows: menu entry and file type. `bundle.py --package` gives it to Inno Setup.
; It installs for the user without an administrator, or for all users with one.

[Setup]
AppId=Loopwright
AppName=Loopwright
AppVersion={#Version}
AppPublisher=Loopwright
DefaultDirName={autopf}\Loopwright
DisableProgramGroupPage=yes
PrivilegesRequired=lowest
PrivilegesRequiredOverridesAllowed=dialog
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
LicenseFile={#License}
UninstallDisplayIcon={app}\loopwright-window.exe
ChangesAssociations=yes
OutputDir={#Target}
OutputBaseFilename={#Name}
Compression=lzma2
SolidCompression=yes
WizardStyle=modern

[InstallDelete]
; Modules of an earlier version.
Type: filesandordirs; Name: "{app}\_internal"

[Files]
Source: "{#Program}\*"; DestDir: "{app}"; Flags: ignoreversion recursesubdirs createallsubdirs

[Icons]
Name: "{autoprograms}\Loopwright"; Filename: "{app}\loopwright-window.exe"

[Registry]
Root: HKA; Subkey: "Software\Classes\.loopwright"; ValueType: string; ValueName: ""; ValueData: "Loopwright.Workflow"; Flags: uninsdeletevalue
Root: HKA; Subkey: "Software\Classes\.loopwright"; ValueType: string; ValueName: "Content Type"; ValueData: "application/vnd.loopwright+json"; Flags: uninsdeletevalue
Root: HKA; Subkey: "Software\Classes\.loopwright\OpenWithProgids"; ValueType: string; ValueName: "Loopwright.Workflow"; ValueData: ""; Flags: uninsdeletevalue
Root: HKA; Subkey: "Software\Classes\Loopwright.Workflow"; ValueType: string; ValueName: ""; ValueData: "Loopwright workflow"; Flags: uninsdeletekey
Root: HKA; Subkey: "Software\Classes\Loopwright.Workflow\DefaultIcon"; ValueType: string; ValueName: ""; ValueData: "{app}\loopwright-window.exe,0"
Root: HKA; Subkey: "Software\Classes\Loopwright.Workflow\shell\open\command"; ValueType: string; ValueName: ""; ValueData: """{app}\loopwright-window.exe"" open ""%1"""
