export { ConfirmEmail } from './confirm-email.tsx';
export { NotMe } from './not-me.tsx';
export { ResetPassword } from './reset-password.tsx';
export { UndoEmailChange } from './undo-email-change.tsx';
export { VerifyEmail } from './verify-email.tsx';
