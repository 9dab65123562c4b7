"""What labels tell about themselves: noise, transitions, class shares, calibration."""
