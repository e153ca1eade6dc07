export { Activity } from './activity.tsx';
export { Devices } from './devices.tsx';
export { Profile } from './profile.tsx';
export { Security } from './security.tsx';
export { YourData } from './your-data.tsx';
