/** What the React and the Vue form of the user button share. The only styles are positions and sizes, by variables. */

export interface UserButtonLabels {
  account: string;
  logOut: string;
  /** Shown if the logout has failed. */
  logOutFailed: string;
}

export const englishLabels: UserButtonLabels = {
  account: 'Your account',
  logOut: 'Log out',
  logOutFailed: 'You are still logged in. Please try again.',
};

const size = 'var(--account-avatar-size, 2rem)';

/** The browser loads a picture that stays sharp up to this width. */
export const pictureSizes = '3rem';

export const pictureStyle = {
  display: 'block',
  width: size,
  height: size,
  lineHeight: size,
  borderRadius: 'var(--account-avatar-radius, 50%)',
  objectFit: 'cover',
  textAlign: 'center',
} as const;

/** Around a picture: the initial of the name has its place until the first picture is loaded. */
export const frameStyle = { ...pictureStyle, position: 'relative' } as const;

export const loadingStyle = { ...pictureStyle, position: 'absolute', inset: 0 } as const;

export const initialOf = (name: string): string | undefined => [...name][0];

/** A picture may be there before its listener, such as on a page that a server rendered. */
export const isLoaded = ({ complete, naturalWidth }: HTMLImageElement): boolean => complete && naturalWidth > 0;

/** Its place in a line does not depend on its content: an empty one has another baseline. */
export const buttonStyle = {
  verticalAlign: 'middle',
  padding: 0,
  border: 0,
  background: 'none',
  font: 'inherit',
  cursor: 'pointer',
} as const;

/** Keeps the place of the button while the session is unknown. */
export const placeStyle = { ...buttonStyle, visibility: 'hidden' } as const;

/** Below the button: a popover is anchored to the button that opens it. */
export const menuStyle = {
  inset: 'auto',
  margin: 'var(--account-menu-margin, 0.25rem 0)',
  positionArea: 'block-end span-inline-start',
} as const;

export const listStyle = { display: 'grid', gap: 'var(--account-menu-gap, 0.5rem)' } as const;
