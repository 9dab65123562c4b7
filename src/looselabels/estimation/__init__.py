"""What can be estimated from the labels: noise, transitions, class shares, calibration."""
