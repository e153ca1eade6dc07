const migrations = {
  '0001-accounts': async () => (await import('./0001-accounts.ts')).Accounts,
  '0002-identities': async () => (await import('./0002-identities.ts')).Identities,
  '0003-uploads': async () => (await import('./0003-uploads.ts')).Uploads,
  '0004-proven-methods': async () => (await import('./0004-proven-methods.ts')).ProvenMethods,
  '0005-mail-requests': async () => (await import('./0005-mail-requests.ts')).MailRequests,
  '0006-search': async () => (await import('./0006-search.ts')).Search,
  '0007-upload-usage': async () => (await import('./0007-upload-usage.ts')).UploadUsages,
  '0008-no-update-time': async () => (await import('./0008-no-update-time.ts')).NoUpdateTime,
  '0009-sessions': async () => (await import('./0009-sessions.ts')).Sessions,
  '0010-trace-of-mails': async () => (await import('./0010-trace-of-mails.ts')).TraceOfMails,
  '0011-activity': async () => (await import('./0011-activity.ts')).Activity,
  '0012-email-changes': async () => (await import('./0012-email-changes.ts')).EmailChanges,
  '0013-identity-email': async () => (await import('./0013-identity-email.ts')).IdentityEmail,
  '0014-removals': async () => (await import('./0014-removals.ts')).Removals,
  '0015-known-devices': async () => (await import('./0015-known-devices.ts')).KnownDevices,
  '0016-second-factors': async () => (await import('./0016-second-factors.ts')).SecondFactors,
  '0017-administration': async () => (await import('./0017-administration.ts')).Administration,
  '0018-invitations': async () => (await import('./0018-invitations.ts')).Invitations,
  '0019-consents': async () => (await import('./0019-consents.ts')).Consents,
  '0020-languages': async () => (await import('./0020-languages.ts')).Languages,
  '0021-browser-of-email-change': async () => (await import('./0021-browser-of-email-change.ts')).BrowserOfEmailChange,
  '0022-acts-of-tokens': async () => (await import('./0022-acts-of-tokens.ts')).ActsOfTokens,
  '0023-invitations-of-administrators': async () =>
    (await import('./0023-invitations-of-administrators.ts')).InvitationsOfAdministrators,
  '0024-device-marks': async () => (await import('./0024-device-marks.ts')).DeviceMarks,
  '0025-mail-turns': async () => (await import('./0025-mail-turns.ts')).MailTurns,
  '0026-event-numbers': async () => (await import('./0026-event-numbers.ts')).EventNumbers,
  '0027-bounded-reads': async () => (await import('./0027-bounded-reads.ts')).BoundedReads,
  '0028-confirmed-versions': async () => (await import('./0028-confirmed-versions.ts')).ConfirmedVersions,
  '0029-webhooks': async () => (await import('./0029-webhooks.ts')).Webhooks,
  '0030-access-keys': async () => (await import('./0030-access-keys.ts')).AccessKeys,
  '0031-applications': async () => (await import('./0031-applications.ts')).Applications,
  '0032-grants': async () => (await import('./0032-grants.ts')).Grants,
  '0033-signing-keys': async () => (await import('./0033-signing-keys.ts')).SigningKeys,
  '0034-logout-and-keys': async () => (await import('./0034-logout-and-keys.ts')).LogoutAndKeys,
  '0035-backchannel-logout': async () => (await import('./0035-backchannel-logout.ts')).BackchannelLogout,
  '0036-picture-sizes': async () => (await import('./0036-picture-sizes.ts')).PictureSizes,
  '0037-way-back': async () => (await import('./0037-way-back.ts')).WayBack,
  '0038-scans': async () => (await import('./0038-scans.ts')).Scans,
  '0039-multipart-uploads': async () => (await import('./0039-multipart-uploads.ts')).MultipartUploads,
  '0040-lists-of-administrators': async () => (await import('./0040-lists-of-administrators.ts')).ListsOfAdministrators,
  '0041-profile-fields': async () => (await import('./0041-profile-fields.ts')).ProfileFields,
  '0042-registering-browsers': async () => (await import('./0042-registering-browsers.ts')).RegisteringBrowsers,
  '0043-changing-administrators': async () =>
    (await import('./0043-changing-administrators.ts')).ChangingAdministrators,
  '0044-grants-of-removed-users': async () => (await import('./0044-grants-of-removed-users.ts')).GrantsOfRemovedUsers,
};

/** In the order in which they run. Listed, not discovered: nothing is read from disk at start. */
export const migrationNames: readonly string[] = Object.keys(migrations);

/** The same with their classes, which only a start with missing migrations loads. */
export const loadMigrations = () =>
  Promise.all(Object.entries(migrations).map(async ([name, load]) => ({ name, class: await load() })));
